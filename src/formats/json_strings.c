/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a JSON text. Out: a shorter one, and the strings taken out of it.
 * Invariant: a mark is a string that begins with U+0000, and no such string of the text itself remains.
 */
#include "formats/json_strings.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/utf8.h"

enum { LONG = 24 }; /* bytes from which a string is worth a mark */

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

/* Decodes an escape \uXXXX at `at`, or a surrogate pair. Returns the place after it; NULL: not an escape. */
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

/* Decodes the escape at `at`. Returns the place after it; NULL: not an escape. */
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

/* Decodes the string with content at `at`. Returns the place after its closing quote; NULL: leave it to the
 * parser to report the error. */
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

/* The place after the closing quote of the string with content at `at`; end if there is none. */
static const char *skip(const char *at, const char *end)
{
    for (; at < end && *at != '"'; at++)
        at += *at == '\\';
    return at < end ? at + 1 : end;
}

static bool is_key(const char *after, const char *end)
{
    while (after < end && (*after == ' ' || *after == '\t' || *after == '\n' || *after == '\r'))
        after++;
    return after < end && *after == ':';
}

/* Whether the string with content at `at` is long enough to be taken out. */
static bool is_long(const char *at, const char *end)
{
    size_t left = (size_t)(end - at);
    if (left >= sizeof mark_start - 1 && !memcmp(at, mark_start, sizeof mark_start - 1))
        return true;
    return left > LONG && !memchr(at, '"', LONG);
}

static void keep(cake_json_strings *out)
{
    CAKE_RESERVE(out->end, out->n, out->cap);
    out->end[out->n++] = out->strings.len;
}

void cake_json_strings_take(cake_json_strings *out, const char *text, size_t len)
{
    const char *end = text + len, *from = text, *at = text;
    while ((at = memchr(at, '"', (size_t)(end - at)))) {
        const char *content = at + 1, *after = NULL;
        size_t before = out->strings.len;
        if (is_long(content, end))
            after = decode(content, end, &out->strings);
        if (after && !is_key(after, end)) {
            cake_buf_add(&out->text, from, (size_t)(content - from));
            cake_buf_addf(&out->text, "%s%zu\"", mark_start, out->n);
            keep(out);
            from = after;
        } else {
            cake_buf_cut(&out->strings, before);
        }
        at = after ? after : skip(content, end);
    }
    if (out->n)
        cake_buf_add(&out->text, from, (size_t)(end - from));
}

const char *cake_json_strings_find(const cake_json_strings *out, const char *mark, size_t n, size_t *len)
{
    if (!n || mark[0])
        return NULL;
    size_t i = strtoull(mark + 1, NULL, 10), from = i ? out->end[i - 1] : 0;
    CAKE_ASSERT(i < out->n);
    *len = out->end[i] - from;
    return out->strings.data ? out->strings.data + from : "";
}

void cake_json_strings_free(cake_json_strings *out)
{
    cake_buf_free(&out->text);
    cake_buf_free(&out->strings);
    free(out->end);
    *out = (cake_json_strings){0};
}
