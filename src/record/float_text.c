/* SPDX-License-Identifier: Apache-2.0
 *
 * In: floats. Out: their decimals. Invariant: a text reads back as the same float, also through a double.
 *
 * An embedding is hundreds of numbers, and printf takes a microsecond for each. Here the digits come from one
 * multiplication by a power of ten, whose error is far below what would change the float.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/format.h"

enum { LEAST = 6, MOST = 9 }; /* significant digits: of a short text; of any float */

static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                               1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

enum { LARGEST = sizeof power / sizeof *power - 1 }; /* up to here powers of ten are exact doubles */

/* x * 10^k; |k| <= LARGEST. */
static double scale(double x, int k)
{
    return k >= 0 ? x * power[k] : x / power[-k];
}

/* Whether a decimal that is off by at most a few units of its last bit reads as x, which is positive. */
static bool reads_as(double decimal, double x)
{
    const float f = (float)x;
    const double below = x - nextafterf(f, 0), above = nextafterf(f, INFINITY) - x;
    return x - decimal < 0.4999999 * below && decimal - x < 0.4999999 * above;
}

static void add_by_printf(float value, cake_buf *out)
{
    char text[32];
    for (int digits = LEAST; digits <= MOST; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value)
            break;
    }
    cake_buf_adds(out, text);
}

/* As printf's %g: digits [n] without zeros at the end, the first of which counts 10^exponent. */
static void add_digits(const char *digits, int n, int exponent, int precision, cake_buf *out)
{
    if (exponent < -4 || exponent >= precision) {
        cake_buf_add(out, digits, 1);
        if (n > 1)
            cake_buf_addc(out, '.');
        cake_buf_add(out, digits + 1, (size_t)(n - 1));
        cake_buf_addf(out, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
    } else if (exponent < 0) {
        cake_buf_add(out, "0.0000", (size_t)(1 - exponent));
        cake_buf_add(out, digits, (size_t)n);
    } else {
        for (int i = 0; i <= exponent || i < n; i++) {
            if (i == exponent + 1)
                cake_buf_addc(out, '.');
            cake_buf_addc(out, i < n ? digits[i] : '0');
        }
    }
}

void cake_line_float(float value, cake_buf *out)
{
    const double x = fabs((double)value);
    int exponent = x > 0 ? (int)floor(log10(x)) : 0, digits = LEAST - 1;
    if (!(x > 0) || abs(MOST - 1 - exponent) > LARGEST || abs(exponent) > LARGEST || x < 1e-30) {
        add_by_printf(value, out);
        return;
    }
    double whole;
    do {
        digits++;
        whole = rint(scale(x, digits - 1 - exponent));
    } while (digits < MOST && !reads_as(scale(whole, exponent - digits + 1), x));
    char text[24];
    int n = snprintf(text, sizeof text, "%lld", (long long)whole);
    exponent += n - digits; /* 9.999996 became 10.0000, or log10 was one off */
    for (; n > 1 && text[n - 1] == '0'; n--)
        ;
    if (signbit(value))
        cake_buf_addc(out, '-');
    add_digits(text, n, exponent, digits, out);
}
