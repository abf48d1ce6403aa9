/* SPDX-License-Identifier: Apache-2.0 */
#include "base/exact_math.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/crc.h"
#include "tests/suite.h"

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Floats of all sizes and signs, infinities and NaN among them. */
static float number(int i)
{
    return from_bits((uint32_t)i * 9973u);
}

enum { NUMBERS = 430000 };

/* libm's double, rounded, is right but where it lies within its error of the middle of two floats. */
static void compare(const char *name, float (*ours)(float), double (*right)(double))
{
    int other = 0;
    for (int i = 0; i < NUMBERS; i++) {
        const float x = number(i), y = ours(x), z = (float)right((double)x);
        other += isnan(z) ? !isnan(y) : y != z || signbit(y) != signbit(z);
    }
    if (other)
        printf("  %s: %d of %d numbers\n", name, other, NUMBERS);
    CU_ASSERT(other == 0);
}

static void test_values(void)
{
    compare("expf", cake_expf, exp);
    compare("expm1f", cake_expm1f, expm1);
    compare("log1pf", cake_log1pf, log1p);
    compare("tanhf", cake_tanhf, tanh);
    compare("erff", cake_erff, erf);
}

/* The sum of an x86-64; other processors must have it, too. */
static void test_bits(void)
{
    static float (*const all[])(float) = {cake_expf, cake_expm1f, cake_log1pf, cake_tanhf, cake_erff};
    static float y[NUMBERS];
    uint32_t crc = 0;
    for (size_t f = 0; f < sizeof all / sizeof *all; f++) {
        for (int i = 0; i < NUMBERS; i++) {
            y[i] = all[f](number(i));
            y[i] = isnan(y[i]) ? 0 : y[i]; /* the sign of a NaN is the processor's */
        }
        crc = cake_crc_on(crc, y, sizeof y);
    }
    CU_ASSERT_EQUAL(crc, 0xfcf241c0);
}

int main(void)
{
    static const suite_test tests[] = {{"values are those of libm's double, rounded", test_values},
                                       {"the same bits everywhere", test_bits}};
    return SUITE_MAIN("exact math", tests);
}
