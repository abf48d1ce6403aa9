/* SPDX-License-Identifier: Apache-2.0
 *
 * The sums of BFDOT in plain C (Arm ARM, BFDotAdd without FEAT_EBF16): the products of a pair are added, and
 * that to the sum. Each addition is rounded to odd: towards zero, and then the last bit is set if anything
 * was lost. Numbers below the smallest normal float count as zero, before and after; beyond the largest one
 * is infinity.
 */
#ifndef CAKE_KERNELS_REF_BFDOT_H
#define CAKE_KERNELS_REF_BFDOT_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/tensor.h"

static inline float bfdot_flush(float v)
{
    return fabsf(v) < FLT_MIN ? copysignf(0, v) : v;
}

/* sum + rest, a double and what it lacks, rounded to odd. */
static inline float bfdot_round(double sum, double rest)
{
    enum { MORE = 29 }; /* bits that a double has behind those of a float */
    uint64_t bits;
    uint32_t out;
    float result;
    if (!isfinite(sum) || sum == 0)
        return (float)sum;
    memcpy(&bits, &sum, sizeof bits);
    if (rest != 0 && bits % 2 == 0) /* to odd as a double first, which changes no float */
        bits += (rest > 0) == (sum > 0) ? 1 : -(uint64_t)1;
    const int exponent = (int)(bits >> 52 & 0x7FF) - 1023;
    if (exponent < -126)
        return copysignf(0, (float)sum);
    if (exponent > 127)
        return copysignf(INFINITY, (float)sum);
    out = (uint32_t)(bits >> 63) << 31 | (uint32_t)(exponent + 127) << 23 |
          (uint32_t)(bits >> MORE & 0x7FFFFF) | (bits % ((uint64_t)1 << MORE) != 0);
    memcpy(&result, &out, sizeof result);
    return result;
}

static inline float bfdot_add(float a, float b)
{
    const double x = bfdot_flush(a), y = bfdot_flush(b), sum = x + y, part = sum - x;
    return bfdot_round(sum, isfinite(sum) ? (x - (sum - part)) + (y - part) : 0); /* two-sum: Knuth */
}

/* The product of two BF16 numbers: 16 bits, so only its size may need rounding. */
static inline float bfdot_multiply(float a, float b)
{
    return bfdot_round((double)bfdot_flush(a) * (double)bfdot_flush(b), 0);
}

/* A chain of pairs, x rounded to BF16 to nearest, ties to even. */
static float add_bfdot(float sum, const float *x, const float *weight, int n)
{
    for (int k = 0; k < n; k += 2) {
        float product[2];
        for (int j = 0; j < 2; j++)
            product[j] =
                k + j < n ? bfdot_multiply(cake_bf16_to_f32(cake_bf16_from_f32(x[k + j])), weight[k + j]) : 0;
        sum = bfdot_add(sum, bfdot_add(product[0], product[1]));
    }
    return sum;
}

#endif
