/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantises rows to 4 bits, by 256-bit instructions, which all instruction sets here have; included once by
 * each one's file.
 *
 * In: a row of floats or halves. Out: the row as kernels/int4.h has it. Eight groups are quantised at a time,
 * one in each lane, so that the sums of a group need no order but their own.
 *
 * Invariant: the same bytes as kernels/int4.c makes. Codes are small whole numbers, so sums of their squares
 * are exact in any order, while products with values are rounded and added as there.
 */
#ifndef CAKE_KERNELS_CPU_INT4_PACK_H
#define CAKE_KERNELS_CPU_INT4_PACK_H

#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/pack.h"
#include "kernels/int4.h"
#include "kernels/tensor.h"

#define I4_SOME (SQUARE * CAKE_I4_GROUP) /* values that are quantised at a time */

/* The nearest codes. |value| <= 1, so bounds are met by larger factors only. */
INLINE __m256 i4_codes(__m256 value, __m256 factor, const bool low, const bool high)
{
    __m256 v = _mm256_round_ps(_mm256_mul_ps(value, factor), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    v = low ? _mm256_max_ps(v, _mm256_set1_ps(-8)) : v;
    return high ? _mm256_min_ps(v, _mm256_set1_ps(7)) : v;
}

/* Sum of code * value over values j, j + 8, ...; square: adds the squares of codes. */
INLINE __m256 i4_sum(const __m256 *value, int j, __m256 factor, __m256 *square, const bool low,
                     const bool high)
{
    __m256 sum = _mm256_setzero_ps();
    UNROLL for (int i = 0; i < CAKE_I4_GROUP; i += SQUARE)
    {
        const __m256 v = i4_codes(value[i + j], factor, low, high);
        sum = _mm256_add_ps(sum, _mm256_mul_ps(v, value[i + j]));
        *square = _mm256_fmadd_ps(v, v, *square);
    }
    return sum;
}

/* The best trial so far of each group. */
typedef struct i4_best {
    __m256 gain, scale, factor;
} i4_best;

INLINE void i4_try(i4_best *best, const __m256 *value, float trial, const bool low, const bool high)
{
    const __m256 factor = _mm256_set1_ps(trial), none = _mm256_setzero_ps();
    __m256 square[2] = {none, none}, half[2];
    for (int j = 0; j < 2; j++) {
        const __m256 a = i4_sum(value, j, factor, &square[0], low, high),
                     b = i4_sum(value, j + 4, factor, &square[1], low, high),
                     c = i4_sum(value, j + 2, factor, &square[0], low, high),
                     d = i4_sum(value, j + 6, factor, &square[1], low, high);
        half[j] = _mm256_add_ps(_mm256_add_ps(a, b), _mm256_add_ps(c, d));
    }
    const __m256 product = _mm256_add_ps(half[0], half[1]), squares = _mm256_add_ps(square[0], square[1]),
                 scale = _mm256_div_ps(product, squares), gain = _mm256_mul_ps(product, scale),
                 better = _mm256_and_ps(_mm256_cmp_ps(squares, none, _CMP_GT_OQ),
                                        _mm256_cmp_ps(gain, best->gain, _CMP_GT_OQ));
    best->gain = _mm256_blendv_ps(best->gain, gain, better);
    best->scale = _mm256_blendv_ps(best->scale, scale, better);
    best->factor = _mm256_blendv_ps(best->factor, factor, better);
}

/* The value of each group with the largest absolute value; NaN if one is NaN. */
INLINE __m256 i4_extreme(const __m256 *value)
{
    const __m256 sign = _mm256_set1_ps(-0.0F);
    __m256 most = value[0];
    for (int i = 1; i < CAKE_I4_GROUP; i++) {
        const __m256 larger =
            _mm256_cmp_ps(_mm256_andnot_ps(sign, value[i]), _mm256_andnot_ps(sign, most), _CMP_NLE_UQ);
        most = _mm256_blendv_ps(most, value[i], _mm256_and_ps(larger, _mm256_cmp_ps(most, most, _CMP_ORD_Q)));
    }
    return most;
}

/* The codes of a group are four words, eight codes in each: word [4] of eight groups become those of group 0,
 * then of group 1, and so on. */
INLINE void i4_store(uint8_t *to, const __m256i *word)
{
    const __m256i a = _mm256_unpacklo_epi32(word[0], word[1]), b = _mm256_unpackhi_epi32(word[0], word[1]),
                  c = _mm256_unpacklo_epi32(word[2], word[3]), d = _mm256_unpackhi_epi32(word[2], word[3]);
    const __m256i group[4] = {_mm256_unpacklo_epi64(a, c), _mm256_unpackhi_epi64(a, c),
                              _mm256_unpacklo_epi64(b, d), _mm256_unpackhi_epi64(b, d)};
    UNROLL for (int i = 0; i < 4; i++)
    {
        _mm_storeu_si128((__m128i *)(to + 16 * i), _mm256_castsi256_si128(group[i]));
        _mm_storeu_si128((__m128i *)(to + 16 * (i + 4)), _mm256_extracti128_si256(group[i], 1));
    }
}

/* Eight groups of x: scale [8], code [I4_SOME / 2]. */
static void i4_quantize(uint16_t *scale, uint8_t *code, const float *x)
{
    enum { WITHIN = 2, ABOVE = 7 }; /* trials before these meet no bound, and only the upper one */
    const __m256 none = _mm256_setzero_ps(), sign = _mm256_set1_ps(-0.0F);
    __m256 value[CAKE_I4_GROUP];
    __m256i word[4];
    float scales[SQUARE];
    for (int i = 0; i < CAKE_I4_GROUP; i += SQUARE)
        transpose_8((const char *)(x + i), CAKE_I4_GROUP * sizeof *x, (__m256i *)(value + i));
    const __m256 most = i4_extreme(value), size = _mm256_andnot_ps(sign, most);
    const __m256 finite = _mm256_cmp_ps(size, _mm256_set1_ps(FLT_MAX), _CMP_LE_OQ),
                 used = _mm256_and_ps(finite, _mm256_cmp_ps(size, _mm256_set1_ps(CAKE_I4_LEAST), _CMP_GE_OQ));
    for (int i = 0; i < CAKE_I4_GROUP; i++)
        value[i] = _mm256_and_ps(_mm256_div_ps(value[i], most), used);
    i4_best best = {none, none, none};
    for (int t = 0; t < WITHIN; t++)
        i4_try(&best, value, cake_i4_trials[t], false, false);
    for (int t = WITHIN; t < ABOVE; t++)
        i4_try(&best, value, cake_i4_trials[t], false, true);
    for (int t = ABOVE; t < CAKE_I4_TRIALS; t++)
        i4_try(&best, value, cake_i4_trials[t], true, true);
    for (int i = 0; i < 4; i++) {
        word[i] = _mm256_setzero_si256();
        UNROLL for (int j = 0; j < SQUARE; j++)
        {
            const __m256 v =
                _mm256_add_ps(i4_codes(value[SQUARE * i + j], best.factor, true, true), _mm256_set1_ps(8));
            word[i] = _mm256_or_si256(word[i], _mm256_slli_epi32(_mm256_cvtps_epi32(v), 4 * j));
        }
    }
    i4_store(code, word);
    _mm256_storeu_ps(scales, _mm256_blendv_ps(_mm256_set1_ps(NAN),
                                              _mm256_and_ps(_mm256_mul_ps(best.scale, most), used), finite));
    for (int i = 0; i < SQUARE; i++)
        scale[i] = cake_bf16_from_f32(scales[i]);
}

/* A row as cake_i4_from makes it. */
static void i4_convert(void *row, const void *in, cake_dtype from, int n)
{
    char *scales = row;
    uint8_t *codes = (uint8_t *)row + cake_format_codes(cake_i4_format(), n);
    for (int k = 0; k < n; k += I4_SOME) {
        float x[I4_SOME] = {0};
        uint16_t scale[SQUARE];
        uint8_t code[I4_SOME / 2];
        const int left = n - k < I4_SOME ? n - k : I4_SOME;
        for (int i = 0; i < left; i += LANES)
            vec_store_n(x + i, vec_load_as(in, from, (size_t)(k + i), left - i), left - i);
        i4_quantize(scale, code, x);
        memcpy(scales + (size_t)(k / CAKE_I4_GROUP) * sizeof *scale, scale,
               (size_t)((left + CAKE_I4_GROUP - 1) / CAKE_I4_GROUP) * sizeof *scale);
        memcpy(codes + k / 2, code, (size_t)(left + 1) / 2);
    }
}

#endif
