/* SPDX-License-Identifier: Apache-2.0
 *
 * In: characters and text. Out: their properties, cases and normal forms.
 * Invariant: valid UTF-8 stays valid UTF-8. The only file that includes utf8proc.
 */
#include "text/unicode.h"

#include <ctype.h>
#include <stdlib.h>
#include <utf8proc.h>

#include "base/err.h"
#include "base/utf8.h"
#include "text/unicode_age.h"

#define PART ((size_t)1 << 16) /* bytes of a text that are normalized together, at least */

/* Where a long text may be cut: before a character that no form combines with the previous one. Only common
 * ones are recognized, by their first bytes: ASCII, Latin, Greek and Cyrillic letters, Han. */
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

static void normalize_span(cake_unicode_form form, const char *text, size_t len, cake_buf *out)
{
    static const int options[] = {
        [CAKE_NFC] = UTF8PROC_COMPOSE,
        [CAKE_NFD] = UTF8PROC_DECOMPOSE,
        [CAKE_NFKC] = UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
        [CAKE_NFKD] = UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT,
    };
    utf8proc_uint8_t *made = NULL;
    utf8proc_ssize_t n = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)len, &made,
                                      (utf8proc_option_t)(UTF8PROC_STABLE | options[form]));
    if (n == UTF8PROC_ERROR_NOMEM)
        cake_die("out of memory: normalizing %zu bytes", len);
    CAKE_ASSERT(n >= 0); /* the text was checked to be UTF-8 */
    cake_buf_add(out, made, (size_t)n);
    free(made);
}

static bool is_young(uint32_t code, int than)
{
    int category;
    return code >= 0x560 && cake_age_find(code, &category) > than;
}

/* The tokenizers library normalizes with Unicode 9: a younger character combines with nothing and nothing
 * moves across it. */
static void normalize_part(cake_unicode_form form, const char *text, size_t len, cake_buf *out)
{
    size_t from = 0;
    for (size_t at = 0, n; at < len; at += n) {
        uint32_t code = 0;
        n = (size_t)cake_utf8_next(text + at, len - at, &code);
        if (!is_young(code, CAKE_AGE_FORM))
            continue;
        if (at > from)
            normalize_span(form, text + from, at - from, out);
        cake_buf_add(out, text + at, n);
        from = at + n;
    }
    if (len > from)
        normalize_span(form, text + from, len - from, out);
}

/* Whether a form keeps the character and never combines it with the previous one. Recognizes common
 * characters only. */
static bool is_stable(cake_unicode_form form, uint32_t code)
{
    if (code < 0x80 || (code >= 0x4E00 && code <= 0x9FA5))
        return true;
    return form == CAKE_NFC && (code < 0x300 || (code >= 0x2010 && code <= 0x2027));
}

/* The end of a span of stable characters, or of unstable ones, from `at` on; *last: the start of its last
 * character. */
static size_t span_end(cake_unicode_form form, const char *text, size_t len, size_t at, bool stable,
                       size_t *last)
{
    for (size_t n; at < len; at += n) {
        uint32_t code = (unsigned char)text[at];
        n = code < 0x80 ? 1 : (size_t)cake_utf8_next(text + at, len - at, &code);
        if (is_stable(form, code) != stable)
            break;
        *last = at;
    }
    return at;
}

/* Copies stable characters, except the one before an unstable character, which may combine with it. The rest
 * is normalized in parts, since utf8proc needs eight bytes for each byte of the text. */
void cake_unicode_normalize(cake_unicode_form form, const char *text, size_t len, cake_buf *out)
{
    for (size_t at = 0; at < len;) {
        size_t last = at, ignored, end = span_end(form, text, len, at, true, &last);
        if (end == len)
            last = len;
        cake_buf_add(out, text + at, last - at);
        at = end == len ? end : span_end(form, text, len, end, false, &ignored);
        for (size_t from = last; from < at; from = end) {
            end = part_end(text, at, from);
            normalize_part(form, text + from, end - from, out);
        }
    }
}

static utf8proc_category_t category(uint32_t code)
{
    return utf8proc_category((utf8proc_int32_t)code);
}

/* The category in a version of Unicode, 8 or later. */
static utf8proc_category_t category_in(uint32_t code, int version)
{
    int young = UTF8PROC_CATEGORY_CN;
    if (code < 0x560)
        return category(code);
    int age = cake_age_find(code, &young);
    if (age)
        return age > version ? UTF8PROC_CATEGORY_CN : (utf8proc_category_t)young;
    return category(code);
}

bool cake_char_is_space(uint32_t code)
{
    if (code < 0x80)
        return code == ' ' || (code >= '\t' && code <= '\r');
    return code == 0x85 || (category(code) >= UTF8PROC_CATEGORY_ZS && category(code) <= UTF8PROC_CATEGORY_ZP);
}

/* As Unicode's UTS 18 defines \w: alphabetic, marks, decimal digits, connectors and joiners. */
bool cake_char_is_word(uint32_t code)
{
    utf8proc_category_t c = category_in(code, CAKE_AGE_PATTERN);
    if (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_NL)
        return true;
    if (c == UTF8PROC_CATEGORY_PC || code == 0x200C || code == 0x200D)
        return true;
    return (code >= 0x24B6 && code <= 0x24E9) || (code >= 0x1F130 && code <= 0x1F149) ||
           (code >= 0x1F150 && code <= 0x1F169) || (code >= 0x1F170 && code <= 0x1F189);
}

cake_class cake_char_class(uint32_t code)
{
    if (code < 0x80) {
        if ((code | 0x20) >= 'a' && (code | 0x20) <= 'z')
            return CAKE_CLASS_LETTER;
        if (code == ' ' || (code >= '\t' && code <= '\r'))
            return CAKE_CLASS_SPACE;
        return code >= '0' && code <= '9' ? CAKE_CLASS_NUMBER : CAKE_CLASS_OTHER;
    }
    utf8proc_category_t c = category_in(code, CAKE_AGE_PATTERN);
    if (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO)
        return CAKE_CLASS_LETTER;
    if (c >= UTF8PROC_CATEGORY_MN && c <= UTF8PROC_CATEGORY_ME)
        return CAKE_CLASS_MARK;
    if (c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO)
        return CAKE_CLASS_NUMBER;
    return cake_char_is_space(code) ? CAKE_CLASS_SPACE : CAKE_CLASS_OTHER;
}

bool cake_char_is_number(uint32_t code)
{
    utf8proc_category_t c = category_in(code, CAKE_AGE_LATEST);
    return c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO;
}

/* Since version 8 some categories have changed: U+166D became a symbol, U+111C9 a mark. */
bool cake_char_is_punctuation(uint32_t code)
{
    if (code < 0x80)
        return code > ' ' && code < 0x7F && !isalnum((int)code);
    utf8proc_category_t c = category_in(code, CAKE_AGE_CATEGORY);
    return (c >= UTF8PROC_CATEGORY_PC && c <= UTF8PROC_CATEGORY_PO) || code == 0x166D || code == 0x111C9;
}

bool cake_char_is_control(uint32_t code)
{
    return category_in(code, CAKE_AGE_CATEGORY) >= UTF8PROC_CATEGORY_CC;
}

bool cake_char_is_mark(uint32_t code)
{
    utf8proc_category_t c = category_in(code, CAKE_AGE_FORM);
    return (c >= UTF8PROC_CATEGORY_MN && c <= UTF8PROC_CATEGORY_ME) || code == 0x1CF2 || code == 0x1CF3;
}

bool cake_char_is_nonspacing(uint32_t code)
{
    static const uint32_t since[] = {0x1885, 0x1886, 0xA9BD,
                                     0x111C9}; /* nonspacing now, but not in version 8 */
    for (size_t i = 0; i < sizeof since / sizeof *since; i++)
        if (code == since[i])
            return false;
    return category_in(code, CAKE_AGE_CATEGORY) == UTF8PROC_CATEGORY_MN || code == 0x1734;
}

size_t cake_grapheme_next(const char *text, size_t len)
{
    utf8proc_int32_t state = 0;
    uint32_t last = 0, code = 0;
    size_t at = (size_t)cake_utf8_next(text, len, &last);
    for (size_t n; at < len; at += n, last = code) {
        n = (size_t)cake_utf8_next(text + at, len - at, &code);
        if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)last, (utf8proc_int32_t)code, &state))
            break;
    }
    return at;
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

bool cake_char_is_figure(uint32_t code)
{
    static const uint32_t ranges[][2] = {
        {0xB2, 0xB3},     {0xB9, 0xB9},       {0x1369, 0x1371},   {0x19DA, 0x19DA},   {0x2070, 0x2070},
        {0x2074, 0x2079}, {0x2080, 0x2089},   {0x2460, 0x2468},   {0x2474, 0x247C},   {0x2488, 0x2490},
        {0x24EA, 0x24EA}, {0x24F5, 0x24FD},   {0x24FF, 0x24FF},   {0x2776, 0x277E},   {0x2780, 0x2788},
        {0x278A, 0x2792}, {0x10A40, 0x10A43}, {0x10E60, 0x10E68}, {0x11052, 0x1105A}, {0x1F100, 0x1F10A},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (code >= ranges[i][0] && code <= ranges[i][1])
            return true;
    return cake_char_is_digit(code);
}

/* Cases of one character that have several and occur in texts. */
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
    static const struct {
        uint32_t first, last, lower;
    } young[] = {{0x1C89, 0x1C89, 0x1C8A},   {0xA7CB, 0xA7CB, 0x264},  {0xA7CC, 0xA7CC, 0xA7CD},
                 {0xA7CE, 0xA7CE, 0xA7CF},   {0xA7D2, 0xA7D2, 0xA7D3}, {0xA7D4, 0xA7D4, 0xA7D5},
                 {0xA7DA, 0xA7DA, 0xA7DB},   {0xA7DC, 0xA7DC, 0x19B},  {0x10D50, 0x10D65, 0x10D70},
                 {0x16EA0, 0x16EB8, 0x16EBB}}; /* of Unicode 16 and 17 */
    if (code == 0x130) {
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    for (size_t i = 0; code >= 0x1C89 && i < sizeof young / sizeof *young; i++) {
        if (code >= young[i].first && code <= young[i].last) {
            out[0] = young[i].lower + code - young[i].first;
            return 1;
        }
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
