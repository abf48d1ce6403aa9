/* SPDX-License-Identifier: Apache-2.0
 *
 * The scalar conversions, against values that ldexp and the definition of the formats give.
 */
#include <math.h>
#include <string.h>

#include "kernels/tensor.h"
#include "tests/suite.h"

/* The value of a small float format by its definition: 1 sign bit, n_exp exponent bits, n_frac fraction
 * bits. */
static double by_definition(unsigned bits, int n_exp, int n_frac)
{
    int bias = (1 << (n_exp - 1)) - 1, exponent = (int)(bits >> n_frac) & ((1 << n_exp) - 1);
    double fraction = bits & ((1u << n_frac) - 1), sign = bits >> (n_exp + n_frac) & 1 ? -1 : 1;
    if (exponent == (1 << n_exp) - 1)
        return fraction != 0 ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, 1 - bias - n_frac);
    return sign * ldexp(1 + ldexp(fraction, -n_frac), exponent - bias);
}

static int same(float a, double b)
{
    return isnan(b) ? isnan(a) : a == b && !signbit(a) == !signbit(b);
}

static void test_all_values(void)
{
    int bad = 0;
    for (unsigned bits = 0; bits < 65536; bits++) {
        float bf16 = cake_bf16_to_f32((uint16_t)bits), f16 = cake_f16_to_f32((uint16_t)bits);
        bad += !same(bf16, by_definition(bits, 8, 7));
        bad += !same(f16, by_definition(bits, 5, 10));
        if (isnan(bf16))
            bad += !isnan(cake_bf16_to_f32(cake_bf16_from_f32(bf16)));
        else
            bad += cake_bf16_from_f32(bf16) != bits;
        if (isnan(f16))
            bad += !isnan(cake_f16_to_f32(cake_f16_from_f32(f16)));
        else
            bad += cake_f16_from_f32(f16) != bits;
    }
    CU_ASSERT_EQUAL(bad, 0);
}

/* Between each finite value and the next: the middle goes to the even one, its neighbours to the nearer
 * one. */
static int rounding_errors(float (*up)(uint16_t), uint16_t (*down)(float), unsigned last)
{
    int bad = 0;
    for (unsigned bits = 0; bits < last; bits++)
        for (unsigned sign = 0; sign < 2; sign++) {
            unsigned s = sign << 15;
            float a = up((uint16_t)(s | bits)), b = up((uint16_t)(s | (bits + 1)));
            float middle = (float)(((double)a + (double)b) / 2);
            bad += down(middle) != (s | (bits & 1 ? bits + 1 : bits));
            bad += down(nextafterf(middle, a)) != (s | bits);
            bad += down(nextafterf(middle, b)) != (s | (bits + 1));
        }
    return bad;
}

static void test_rounding(void)
{
    CU_ASSERT_EQUAL(rounding_errors(cake_f16_to_f32, cake_f16_from_f32, 0x7BFF), 0);
    CU_ASSERT_EQUAL(rounding_errors(cake_bf16_to_f32, cake_bf16_from_f32, 0x7F7F), 0);
}

static void test_overflow(void)
{
    CU_ASSERT_EQUAL(cake_f16_from_f32(65519.996f), 0x7BFF);
    CU_ASSERT_EQUAL(cake_f16_from_f32(65520.0f), 0x7C00);
    CU_ASSERT_EQUAL(cake_f16_from_f32(-1e30f), 0xFC00);
    CU_ASSERT_EQUAL(cake_f16_from_f32(INFINITY), 0x7C00);
    CU_ASSERT_EQUAL(cake_f16_from_f32(0x1p-25f), 0);
    CU_ASSERT_EQUAL(cake_f16_from_f32(0x1.000002p-25f), 1);
    CU_ASSERT_EQUAL(cake_f16_from_f32(-0x1p-149f), 0x8000);
    CU_ASSERT_EQUAL(cake_bf16_from_f32(0x1.fffffep127f), 0x7F80);
    CU_ASSERT_EQUAL(cake_bf16_from_f32(-INFINITY), 0xFF80);

    uint32_t low = 0x7F800001; /* a NaN whose upper half is that of infinity */
    float nan;
    memcpy(&nan, &low, sizeof nan);
    CU_ASSERT(isnan(cake_bf16_to_f32(cake_bf16_from_f32(nan))));
    CU_ASSERT(isnan(cake_f16_to_f32(cake_f16_from_f32(nan))));
}

static void test_names(void)
{
    CU_ASSERT_STRING_EQUAL(cake_dtype_name(CAKE_F32), "f32");
    CU_ASSERT_STRING_EQUAL(cake_dtype_name(CAKE_BF16), "bf16");
    CU_ASSERT_STRING_EQUAL(cake_dtype_name(CAKE_F16), "f16");
    CU_ASSERT_EQUAL(cake_dtype_bytes(CAKE_F32), 4);
    CU_ASSERT_EQUAL(cake_dtype_bytes(CAKE_BF16), 2);
    CU_ASSERT_EQUAL(cake_dtype_bytes(CAKE_F16), 2);
}

int main(void)
{
    static const suite_test tests[] = {
        {"all 65536 values of BF16 and F16, there and back", test_all_values},
        {"rounding to nearest even between all neighbours", test_rounding},
        {"too large, too small, NaN", test_overflow},
        {"names and sizes", test_names},
    };
    return SUITE_MAIN("tensor", tests);
}
