/* SPDX-License-Identifier: Apache-2.0
 *
 * In: characters and text. Out: their properties, cases and normal forms.
 * Invariant: valid UTF-8 stays valid UTF-8. The only file that includes utf8proc.
 */
#include "token/unicode.h"

#include <stdlib.h>
#include <utf8proc.h>

#include "base/err.h"

#define PART ((size_t)1 << 16) /* bytes of a text that are normalized at a time, and some more */

/* Where a long text may be cut: before a character that no form puts together with what stands before it. Of
 * those only the common ones are told, by their first bytes: ASCII, Latin, Greek and Cyrillic letters, Han. */
static size_t part_end(const char *text, size_t len, size_t from)
{
    size_t at = len - from > PART ? from + PART : len;
    for (; at < len; at++) {
        unsigned char c = (unsigned char)text[at];
        if (c < 0x80 || (c >= 0xC3 && c <= 0xCB) || (c >= 0xCE && c <= 0xD1) || (c >= 0xE5 && c <= 0xE8))
            break;
    }
    return at;
}

static void normalize_part(cake_unicode_form form, const char *text, size_t len, cake_buf *out)
{
    static const int options[] = {
        [CAKE_NFC] = UTF8PROC_COMPOSE,
        [CAKE_NFD] = UTF8PROC_DECOMPOSE,
        [CAKE_NFKC] = UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
        [CAKE_NFKD] = UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT,
    };
    size_t ascii = 0;
    while (ascii < len && (unsigned char)text[ascii] < 0x80)
        ascii++;
    if (ascii == len) { /* ASCII is in all four forms already */
        cake_buf_add(out, text, len);
        return;
    }
    utf8proc_uint8_t *made = NULL;
    utf8proc_ssize_t n = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)len, &made,
                                      (utf8proc_option_t)(UTF8PROC_STABLE | options[form]));
    if (n == UTF8PROC_ERROR_NOMEM)
        cake_die("out of memory: normalizing %zu bytes", len);
    CAKE_ASSERT(n >= 0); /* the text was checked to be UTF-8 */
    cake_buf_add(out, made, (size_t)n);
    free(made);
}

/* In parts, since the library takes eight bytes for each of the text. */
void cake_unicode_normalize(cake_unicode_form form, const char *text, size_t len, cake_buf *out)
{
    for (size_t at = 0, end; at < len; at = end) {
        end = part_end(text, len, at);
        normalize_part(form, text + at, end - at, out);
    }
}

static utf8proc_category_t category(uint32_t code)
{
    return utf8proc_category((utf8proc_int32_t)code);
}

bool cake_char_is_space(uint32_t code)
{
    if (code < 0x80)
        return code == ' ' || (code >= '\t' && code <= '\r');
    return code == 0x85 || (category(code) >= UTF8PROC_CATEGORY_ZS && category(code) <= UTF8PROC_CATEGORY_ZP);
}

/* Alphabetic, marks, decimal digits, connectors and joiners, as Unicode's UTS 18 defines \w. */
bool cake_char_is_word(uint32_t code)
{
    utf8proc_category_t c = category(code);
    if (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_NL)
        return true;
    if (c == UTF8PROC_CATEGORY_PC || code == 0x200C || code == 0x200D)
        return true;
    return (code >= 0x24B6 && code <= 0x24E9) || (code >= 0x1F130 && code <= 0x1F149) ||
           (code >= 0x1F150 && code <= 0x1F169) || (code >= 0x1F170 && code <= 0x1F189);
}

bool cake_char_is_printable(uint32_t code)
{
    utf8proc_category_t c = category(code);
    return code == ' ' || (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_SO);
}

bool cake_char_is_upper(uint32_t code)
{
    return category(code) == UTF8PROC_CATEGORY_LU || category(code) == UTF8PROC_CATEGORY_LT;
}

bool cake_char_is_lower(uint32_t code)
{
    return category(code) == UTF8PROC_CATEGORY_LL || code == 0xAA || code == 0xBA;
}

bool cake_char_is_letter(uint32_t code)
{
    return category(code) >= UTF8PROC_CATEGORY_LU && category(code) <= UTF8PROC_CATEGORY_LO;
}

bool cake_char_is_digit(uint32_t code)
{
    return category(code) == UTF8PROC_CATEGORY_ND;
}

/* The cases that make several characters of one and occur in texts. */
static int expand(uint32_t code, uint32_t out[3], bool title)
{
    static const struct {
        uint32_t code, upper[3], title[3];
    } cases[] = {
        {0xDF, {'S', 'S'}, {'S', 's'}},
        {0x149, {0x2BC, 'N'}, {0x2BC, 'N'}},
        {0x1F0, {'J', 0x30C}, {'J', 0x30C}},
        {0xFB00, {'F', 'F'}, {'F', 'f'}},
        {0xFB01, {'F', 'I'}, {'F', 'i'}},
        {0xFB02, {'F', 'L'}, {'F', 'l'}},
        {0xFB03, {'F', 'F', 'I'}, {'F', 'f', 'i'}},
        {0xFB04, {'F', 'F', 'L'}, {'F', 'f', 'l'}},
        {0xFB05, {'S', 'T'}, {'S', 't'}},
        {0xFB06, {'S', 'T'}, {'S', 't'}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (cases[i].code != code)
            continue;
        int n = 0;
        for (; n < 3 && cases[i].upper[n]; n++)
            out[n] = title ? cases[i].title[n] : cases[i].upper[n];
        return n;
    }
    return 0;
}

int cake_char_upper(uint32_t code, uint32_t out[3])
{
    int n = code < 0x80 ? 0 : expand(code, out, false);
    if (n)
        return n;
    out[0] = (uint32_t)utf8proc_toupper((utf8proc_int32_t)code);
    return 1;
}

int cake_char_lower(uint32_t code, uint32_t out[3])
{
    if (code == 0x130) {
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    out[0] = (uint32_t)utf8proc_tolower((utf8proc_int32_t)code);
    return 1;
}

int cake_char_title(uint32_t code, uint32_t out[3])
{
    int n = code < 0x80 ? 0 : expand(code, out, true);
    if (n)
        return n;
    out[0] = (uint32_t)utf8proc_totitle((utf8proc_int32_t)code);
    return 1;
}
