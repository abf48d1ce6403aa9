/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a score in the text of a tokenizer.json. Out: the number that the `tokenizers` library reads.
 * Invariant: at most 64 bits of digits are used, and the exponent of the skipped ones is bounded by their
 * number.
 */
#include "tokenizer/parse_score.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define LARGEST_POWER 308 /* of ten, in a double */
#define EXPONENT_MOST 1000000

typedef struct reading {
    const char *at, *end;
    uint64_t digits;
    int64_t exponent;
} reading;

static int digit(const reading *r)
{
    return r->at < r->end && *r->at >= '0' && *r->at <= '9' ? *r->at - '0' : -1;
}

/* Appends a digit to r->digits; false: it does not fit. */
static bool keep(reading *r, int next)
{
    uint64_t more;
    if (__builtin_mul_overflow(r->digits, (uint64_t)10, &more) ||
        __builtin_add_overflow(more, (uint64_t)next, &more))
        return false;
    r->digits = more;
    return true;
}

/* From the first digit that does not fit, all of the run are dropped. A dropped digit changes the exponent by
 * `dropped`, another by `kept`. */
static bool read_run(reading *r, int kept, int dropped)
{
    const char *begin = r->at;
    bool room = true;
    for (int next; (next = digit(r)) >= 0; r->at++) {
        room = room && keep(r, next);
        r->exponent += room ? kept : dropped;
    }
    return r->at > begin;
}

static bool read_exponent(reading *r)
{
    bool minus = r->at < r->end && *r->at == '-';
    int64_t value = 0;
    r->at += minus || (r->at < r->end && *r->at == '+');
    if (digit(r) < 0)
        return false;
    for (; digit(r) >= 0; r->at++)
        value = value < EXPONENT_MOST ? 10 * value + digit(r) : value;
    r->exponent += minus ? -value : value;
    return true;
}

/* Correctly rounded; 10^22 is the largest exact one. */
static double power_of_ten(int64_t n)
{
    double power = 1;
    char text[8];
    if (n <= 22) {
        while (n--)
            power *= 10;
        return power;
    }
    snprintf(text, sizeof text, "1e%d", (int)n);
    return strtod(text, NULL);
}

size_t cake_parse_score(const char *text, size_t len, double *out)
{
    reading r = {.at = text, .end = text + len};
    bool minus = len && *text == '-';
    r.at += minus;
    bool zero = digit(&r) == 0;
    const char *begin = r.at;
    if (!read_run(&r, 0, 1) || (zero && r.at - begin > 1))
        return 0;
    if (r.at < r.end && *r.at == '.' && (r.at++, !read_run(&r, -1, 0)))
        return 0;
    if (r.at < r.end && (*r.at == 'e' || *r.at == 'E') && (r.at++, !read_exponent(&r)))
        return 0;
    double value = (double)r.digits;
    for (; value != 0 && r.exponent < -LARGEST_POWER; r.exponent += LARGEST_POWER)
        value /= power_of_ten(LARGEST_POWER);
    if (value != 0 && r.exponent > LARGEST_POWER)
        return 0;
    if (value != 0)
        value = r.exponent < 0 ? value / power_of_ten(-r.exponent) : value * power_of_ten(r.exponent);
    *out = minus ? -value : value;
    return isfinite(value) ? (size_t)(r.at - text) : 0;
}
