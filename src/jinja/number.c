/* SPDX-License-Identifier: Apache-2.0
 *
 * In: texts. Out: the numbers that Python's int(text, base) and float(text) read in them: white space around
 * them, single underscores between digits, decimal digits of any script (docs.python.org,
 * library/functions.html#int and #float). Integers of any size come out whole.
 */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "jinja/internal.h"
#include "text/unicode.h"

enum { MOST = 4300 }; /* characters of an integer, sys.get_int_max_str_digits(); also of a number here */

/* Of a decimal digit: they stand in tens, from 0 on. */
static char decimal(uint32_t code)
{
    uint32_t first = code;
    while (first && cake_char_is_digit(first - 1))
        first--;
    return (char)('0' + (code - first) % 10);
}

/* The text in ASCII, without what stands around it; false: it is no number. */
static bool plain(cake_render *run, cake_value text, char out[MOST + 1])
{
    text = cake_text_strip(run, text, cake_value_none(), true, true);
    size_t len = 0;
    for (size_t i = 0, n; i < text.text.len && !run->failed; i += n) {
        uint32_t code = 0;
        n = (size_t)cake_utf8_next(text.text.data + i, text.text.len - i, &code);
        bool digit = code >= 0x80 && cake_char_is_digit(code);
        if (!n || !code || len == MOST || (code >= 0x80 && !digit))
            return false;
        out[len++] = digit ? decimal(code) : (char)code;
    }
    out[len] = 0;
    return len > 0 && !run->failed;
}

static int digit_of(char c)
{
    int low = c | ' ';
    return c >= '0' && c <= '9' ? c - '0' : low >= 'a' && low <= 'z' ? low - 'a' + 10 : 36;
}

/* Takes the single underscores between digits out, in place; false: one stands elsewhere. */
static bool join_digits(char *text, int base)
{
    size_t n = 0;
    for (size_t i = 0; text[i]; i++) {
        if (text[i] != '_')
            text[n++] = text[i];
        else if (!i || digit_of(text[i - 1]) >= base || digit_of(text[i + 1]) >= base)
            return false;
    }
    text[n] = 0;
    return true;
}

/* The base that the prefix of p says, if 0 or that one was asked for; *p goes behind it. */
static int64_t prefix(char **p, int64_t base)
{
    int low = **p == '0' ? (*p)[1] | ' ' : 0;
    int64_t said = low == 'x' ? 16 : low == 'o' ? 8 : low == 'b' ? 2 : 0;
    if (said && (!base || base == said)) {
        *p += 2;
        *p += **p == '_';
        return said;
    }
    bool zeros = **p == '0' && strspn(*p, "0_") != strlen(*p); /* 012 is no literal */
    return base ? base : zeros ? -1 : 10;
}

/* digits in base, as decimal text of the run: the value so far, times the base, plus a digit. */
static cake_value convert(cake_render *run, bool minus, const char *digits, int64_t base)
{
    size_t len = strlen(digits), room = len * 2 + 2,
           n = 1; /* a digit of base 36 is less than two decimal ones */
    if (!cake_render_room(run, room) || !cake_render_spend(run, len * len / 16))
        return cake_value_none();
    unsigned char *value = cake_jinja_arena_take(&run->region, room); /* the lowest first */
    for (const char *p = digits; *p; p++) {
        unsigned carry = (unsigned)digit_of(*p);
        for (size_t i = 0; i < n || carry; i++) {
            n = i < n ? n : i + 1;
            carry += value[i] * (unsigned)base;
            value[i] = (unsigned char)(carry % 10);
            carry /= 10;
        }
    }
    while (n > 1 && !value[n - 1])
        n--;
    char *text = cake_jinja_arena_take(&run->region, n + 1), *out = text;
    if (minus)
        *out++ = '-';
    while (n)
        *out++ = (char)('0' + value[--n]);
    return cake_value_digits(text, (size_t)(out - text));
}

bool cake_text_to_int(cake_render *run, cake_value text, int64_t base, cake_value *out)
{
    char number[MOST + 1], *p = number;
    if (base < 0 || base == 1 || base > 36 || !plain(run, text, number))
        return false;
    bool minus = *p == '-';
    p += minus || *p == '+';
    base = prefix(&p, base);
    if (base < 0 || !*p || !join_digits(p, (int)base))
        return false;
    for (const char *digit = p; *digit; digit++)
        if (digit_of(*digit) >= base)
            return false;
    *out = convert(run, minus, p, base);
    return !run->failed;
}

bool cake_text_to_real(cake_render *run, cake_value text, double *out)
{
    char number[MOST + 1], *end;
    if (!plain(run, text, number) || strpbrk(number, "xX(") || !join_digits(number, 10))
        return false;
    double real = strtod(number, &end);
    if (*end)
        return false;
    *out = real;
    return true;
}
