/* SPDX-License-Identifier: Apache-2.0
 *
 * Invariant: no operation is fused or reordered (-ffp-contract=off), and none is a call of libm whose bits
 * may differ: ldexp, frexp and rint are exact.
 */
#include "base/exact_math.h"

#include <math.h>

/* ln 2 in two parts. The first has 33 bits: its product with a whole number below 2^20 is exact. */
#define LN2_HIGH 0x1.62e42fefa0000p-1
#define LN2_LOW  0x1.cf79abc9e3b3ap-40
#define LN2      0x1.62e42fefa39efp-1

/* e^x = 2^n (1 + p), |x| < 2^20. */
static double exp_parts(double x, int *n)
{
    enum { TERMS = 14 }; /* |r|^14 / 14! is below 1e-17 */
    const double whole = rint(x / LN2), r = (x - whole * LN2_HIGH) - whole * LN2_LOW;
    double p = 0;
    for (int i = TERMS; i > 0; i--)
        p = (p + 1) * r / i; /* r + r^2 / 2 + ... + r^14 / 14! */
    *n = (int)whole;
    return p;
}

/* e^x - 1, where e^x is in the range of floats or near it. */
static double expm1_of(double x)
{
    int n;
    const double p = exp_parts(x, &n);
    return n ? ldexp(1 + p, n) - 1 : p;
}

static double exp_of(double x)
{
    int n;
    const double p = exp_parts(x, &n);
    return ldexp(1 + p, n);
}

/* Beyond these e^x is infinite, or zero. */
static double within(double x)
{
    return x > 200 ? 200 : x < -200 ? -200 : x;
}

float cake_expf(float x)
{
    return isnan(x) ? x : (float)exp_of(within(x));
}

float cake_expm1f(float x)
{
    return isnan(x) || x == 0 ? x : (float)expm1_of(within(x));
}

float cake_log1pf(float x)
{
    enum { TERMS = 23 }; /* s^23 of s < 0.172 */
    double sum = 0, s = x / (2 + (double)x);
    int n = 0;
    if (!(x > -1) || isinf(x) || x == 0)
        return x == -1 ? -INFINITY : x >= 0 ? x : NAN;
    if (x < -0.29F || x > 0.41F) { /* 1 + x = 2^n m with 0.7 < m < 1.42 */
        const double m = frexp(1 + (double)x, &n), near = m < 0.7071 ? 2 * m : m;
        n -= m < 0.7071;
        s = (near - 1) / (near + 1);
    }
    for (int i = TERMS; i > 0; i -= 2)
        sum = sum * (s * s) + 1.0 / i; /* s + s^3 / 3 + ... = atanh(s) */
    return (float)(n * LN2_HIGH + (n * LN2_LOW + 2 * s * sum));
}

float cake_tanhf(float x)
{
    if (isnan(x) || x == 0)
        return x;
    const double t = expm1_of(2 * (x > 20 ? 20 : x < -20 ? -20 : (double)x));
    return (float)(t / (t + 2));
}

/* 2 / sqrt(pi) e^(-x^2) times the sum of 2^n x^(2 n + 1) / (1 3 5 ... (2 n + 1)) (Abramowitz and Stegun
 * 7.1.6): all terms have one sign. */
float cake_erff(float x)
{
    const double v = x, square = v * v, two_by_root_pi = 0x1.20dd750429b6dp+0;
    if (isnan(x) || x == 0)
        return x;
    if (fabs(v) > 4) /* 1 - erf(4) is 1.5e-8, less than half of the last bit */
        return x > 0 ? 1 : -1;
    double term = v, sum = v;
    for (int n = 1; fabs(term) > 1e-18 * fabs(sum); n++) {
        term *= 2 * square / (2 * n + 1);
        sum += term;
    }
    return (float)(two_by_root_pi * exp_of(-square) * sum);
}
