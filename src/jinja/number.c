/* SPDX-License-Identifier: Apache-2.0
 *
 * In: texts. Out: the numbers that Python's int(text) and float(text) read: with white space around them,
 * single underscores between digits, decimal digits of any script (docs.python.org,
 * library/functions.html#int and #float). Integers may have any size.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "jinja/internal.h"
#include "text/unicode.h"

enum { MAX_CHARS = 4300 }; /* characters of a number: Python's default limit for integers */

/* The value of a decimal digit: Unicode has them in tens, from 0 on. */
static char decimal(uint32_t code)
{
    uint32_t first = code;
    while (first && cake_char_is_digit(first - 1))
        first--;
    return (char)('0' + (code - first) % 10);
}

/* The text in ASCII, without white space around it; false: not a number. */
static bool plain(cake_render *run, cake_value text, char out[MAX_CHARS + 1])
{
    text = cake_text_strip(run, text, cake_value_none(), true, true);
    size_t len = 0;
    for (size_t i = 0, n; i < text.text.len && !run->failed; i += n) {
        uint32_t code = 0;
        n = (size_t)cake_utf8_next(text.text.data + i, text.text.len - i, &code);
        bool digit = code >= 0x80 && cake_char_is_digit(code);
        if (!n || !code || len == MAX_CHARS || (code >= 0x80 && !digit))
            return false;
        out[len++] = digit ? decimal(code) : (char)code;
    }
    out[len] = 0;
    return len > 0 && !run->failed;
}

/* Removes single underscores between digits, in place; false: there are others. */
static bool join_digits(char *text)
{
    size_t n = 0;
    for (size_t i = 0; text[i]; i++) {
        if (text[i] != '_')
            text[n++] = text[i];
        else if (!i || !isdigit((unsigned char)text[i - 1]) || !isdigit((unsigned char)text[i + 1]))
            return false;
    }
    text[n] = 0;
    return true;
}

bool cake_text_to_int(cake_render *run, cake_value text, cake_value *out)
{
    char number[MAX_CHARS + 1], *p = number;
    if (!plain(run, text, number))
        return false;
    bool minus = *p == '-';
    p += minus || *p == '+';
    if (!*p || !join_digits(p) || p[strspn(p, "0123456789")])
        return false;
    while (*p == '0' && p[1])
        p++;
    cake_writer w = {.run = run};
    cake_writes(&w, minus ? "-" : "");
    cake_writes(&w, p);
    *out = cake_value_digits(w.data, w.len);
    return !run->failed;
}

bool cake_text_to_real(cake_render *run, cake_value text, double *out)
{
    char number[MAX_CHARS + 1], *end;
    if (!plain(run, text, number) || strpbrk(number, "xX(") || !join_digits(number))
        return false;
    double real = strtod(number, &end);
    if (*end)
        return false;
    *out = real;
    return true;
}
