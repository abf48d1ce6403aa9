/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a JSON text. Out: a shorter one and the strings it lacks. formats/json.c calls.
 * Invariant: a mark is a string that begins with U+0000, and no such string of the text itself is left in it.
 */
#include "formats/json_strings.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/utf8.h"

enum { LONG = 24 }; /* bytes from which taking a string out is worth the mark */

static const char mark_start[] = "\\u0000";

/* Four hexadecimal digits, or -1. */
static int32_t hex4(const char *at, const char *end)
{
    int32_t value = 0;
    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = at[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* The character of an escape \uXXXX at `at`, a surrogate pair's too; NULL: not one, else the place behind
 * it. */
static const char *decode_unicode(const char *at, const char *end, cake_buf *out)
{
    int32_t code = hex4(at + 2, end), low;
    at += 6;
    if (code >= 0xD800 && code < 0xDC00) {
        if (end - at < 6 || at[0] != '\\' || at[1] != 'u' || (low = hex4(at + 2, end)) < 0xDC00 ||
            low > 0xDFFF)
            return NULL;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        at += 6;
    } else if (code < 0 || (code >= 0xDC00 && code < 0xE000)) {
        return NULL;
    }
    char bytes[4];
    cake_buf_add(out, bytes, (size_t)cake_utf8_put(bytes, (uint32_t)code));
    return at;
}

/* What the escape at `at` stands for; NULL: it is none, else the place behind it. */
static const char *decode_escape(const char *at, const char *end, cake_buf *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (end - at < 2)
        return NULL;
    const char *known = at[1] ? strchr(from, at[1]) : NULL;
    if (known) {
        cake_buf_addc(out, to[known - from]);
        return at + 2;
    }
    return at[1] == 'u' ? decode_unicode(at, end, out) : NULL;
}

static bool has_controls(const char *at, const char *end)
{
    bool found = false;
    for (; at < end; at++)
        found |= (unsigned char)*at < 0x20;
    return found;
}

/* Decodes the string whose content begins at `at`; the place behind its closing quote, or NULL if the parser
 * shall say what is wrong with it. */
static const char *decode(const char *at, const char *end, cake_buf *out)
{
    const char *quote = NULL;
    while (at) {
        if (!quote || quote < at)
            quote = memchr(at, '"', (size_t)(end - at));
        if (!quote)
            return NULL;
        const char *escape = memchr(at, '\\', (size_t)(quote - at));
        const char *stop = escape ? escape : quote;
        if (has_controls(at, stop))
            return NULL;
        cake_buf_add(out, at, (size_t)(stop - at));
        if (!escape)
            return quote + 1;
        at = decode_escape(escape, end, out);
    }
    return NULL;
}

/* Behind the closing quote of a string whose content begins at `at`; end if there is none. */
static const char *skip(const char *at, const char *end)
{
    for (; at < end && *at != '"'; at++)
        at += *at == '\\';
    return at < end ? at + 1 : end;
}

static bool is_key(const char *behind, const char *end)
{
    while (behind < end && (*behind == ' ' || *behind == '\t' || *behind == '\n' || *behind == '\r'))
        behind++;
    return behind < end && *behind == ':';
}

/* Whether the content at `at` is one to be taken out. */
static bool is_long(const char *at, const char *end)
{
    size_t left = (size_t)(end - at);
    if (left >= sizeof mark_start - 1 && !memcmp(at, mark_start, sizeof mark_start - 1))
        return true;
    return left > LONG && !memchr(at, '"', LONG);
}

static void keep(cake_json_strings *lift)
{
    if (lift->n == lift->cap) {
        lift->cap = lift->cap ? 2 * lift->cap : 16;
        lift->end = cake_grow(lift->end, lift->cap, sizeof *lift->end);
    }
    lift->end[lift->n++] = lift->strings.len;
}

void cake_json_strings_take(cake_json_strings *lift, const char *text, size_t len)
{
    const char *end = text + len, *from = text, *at = text;
    while ((at = memchr(at, '"', (size_t)(end - at)))) {
        const char *content = at + 1, *behind = NULL;
        size_t before = lift->strings.len;
        if (is_long(content, end))
            behind = decode(content, end, &lift->strings);
        if (behind && !is_key(behind, end)) {
            cake_buf_add(&lift->text, from, (size_t)(content - from));
            cake_buf_addf(&lift->text, "%s%zu\"", mark_start, lift->n);
            keep(lift);
            from = behind;
        } else {
            cake_buf_cut(&lift->strings, before);
        }
        at = behind ? behind : skip(content, end);
    }
    if (lift->n)
        cake_buf_add(&lift->text, from, (size_t)(end - from));
}

const char *cake_json_strings_find(const cake_json_strings *lift, const char *mark, size_t n, size_t *len)
{
    if (!n || mark[0])
        return NULL;
    size_t i = strtoull(mark + 1, NULL, 10), from = i ? lift->end[i - 1] : 0;
    CAKE_ASSERT(i < lift->n);
    *len = lift->end[i] - from;
    return lift->strings.data ? lift->strings.data + from : "";
}

void cake_json_strings_free(cake_json_strings *lift)
{
    cake_buf_free(&lift->text);
    cake_buf_free(&lift->strings);
    free(lift->end);
    *lift = (cake_json_strings){0};
}
