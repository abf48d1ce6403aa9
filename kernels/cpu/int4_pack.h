/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantises rows to 4 bits, with the functions of eight_*.h; included once by
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
INLINE floats8 i4_codes(floats8 value, floats8 factor, const bool low, const bool high)
{
    floats8 v = floats8_round(floats8_mul(value, factor));
    v = low ? floats8_max(v, floats8_set(-8)) : v;
    return high ? floats8_min(v, floats8_set(7)) : v;
}

/* Sum of code * value over values j, j + 8, ...; square: adds the squares of codes. */
INLINE floats8 i4_sum(const floats8 *value, int j, floats8 factor, floats8 *square, const bool low,
                      const bool high)
{
    floats8 sum = floats8_set(0);
    UNROLL for (int i = 0; i < CAKE_I4_GROUP; i += SQUARE)
    {
        const floats8 v = i4_codes(value[i + j], factor, low, high);
        sum = floats8_add(sum, floats8_mul(v, value[i + j]));
        *square = floats8_fma(v, v, *square);
    }
    return sum;
}

/* The best trial so far of each group. */
typedef struct i4_best {
    floats8 gain, scale, factor;
} i4_best;

INLINE void i4_try(i4_best *best, const floats8 *value, float trial, const bool low, const bool high)
{
    const floats8 factor = floats8_set(trial), none = floats8_set(0);
    floats8 square[2] = {none, none}, half[2];
    for (int j = 0; j < 2; j++) {
        const floats8 a = i4_sum(value, j, factor, &square[0], low, high),
                      b = i4_sum(value, j + 4, factor, &square[1], low, high),
                      c = i4_sum(value, j + 2, factor, &square[0], low, high),
                      d = i4_sum(value, j + 6, factor, &square[1], low, high);
        half[j] = floats8_add(floats8_add(a, b), floats8_add(c, d));
    }
    const floats8 product = floats8_add(half[0], half[1]), squares = floats8_add(square[0], square[1]),
                  scale = floats8_div(product, squares), gain = floats8_mul(product, scale);
    const words8 better = words8_and(floats8_greater(squares, none), floats8_greater(gain, best->gain));
    best->gain = floats8_choose(better, gain, best->gain);
    best->scale = floats8_choose(better, scale, best->scale);
    best->factor = floats8_choose(better, factor, best->factor);
}

/* The value of each group with the largest absolute value; NaN if one is NaN. */
INLINE floats8 i4_extreme(const floats8 *value)
{
    floats8 most = value[0];
    for (int i = 1; i < CAKE_I4_GROUP; i++) {
        const words8 smaller = floats8_at_most(floats8_size(value[i]), floats8_size(most));
        most = floats8_choose(smaller, most, floats8_choose(floats8_at_most(most, most), value[i], most));
    }
    return most;
}

/* The codes of a group are four words, eight codes in each: word [4] of eight groups become those of group 0,
 * then of group 1, and so on. */
INLINE void i4_store(uint8_t *to, const words8 *word)
{
    const words8 a = words8_low(word[0], word[1]), b = words8_high(word[0], word[1]),
                 c = words8_low(word[2], word[3]), d = words8_high(word[2], word[3]);
    const words8 group[4] = {words8_low_pairs(a, c), words8_high_pairs(a, c), words8_low_pairs(b, d),
                             words8_high_pairs(b, d)};
    UNROLL for (int i = 0; i < 4; i++)
    {
        words4_store(to + 16 * i, words8_half(group[i], 0));
        words4_store(to + 16 * (i + 4), words8_half(group[i], 1));
    }
}

/* Eight groups of x: scale [8], code [I4_SOME / 2]. */
static void i4_quantize(uint16_t *scale, uint8_t *code, const float *x)
{
    enum { WITHIN = 2, ABOVE = 7 }; /* trials before these meet no bound, and only the upper one */
    const floats8 none = floats8_set(0);
    floats8 value[CAKE_I4_GROUP];
    words8 word[SQUARE];
    float scales[SQUARE];
    for (int i = 0; i < CAKE_I4_GROUP; i += SQUARE) {
        transpose_8((const char *)(x + i), CAKE_I4_GROUP * sizeof *x, word);
        UNROLL for (int j = 0; j < SQUARE; j++) value[i + j] = floats8_of(word[j]);
    }
    const floats8 most = i4_extreme(value), size = floats8_size(most);
    const words8 finite = floats8_at_most(size, floats8_set(FLT_MAX)),
                 used = words8_and(finite, floats8_at_most(floats8_set(CAKE_I4_LEAST), size));
    for (int i = 0; i < CAKE_I4_GROUP; i++)
        value[i] = floats8_only(floats8_div(value[i], most), used);
    i4_best best = {none, none, none};
    for (int t = 0; t < WITHIN; t++)
        i4_try(&best, value, cake_i4_trials[t], false, false);
    for (int t = WITHIN; t < ABOVE; t++)
        i4_try(&best, value, cake_i4_trials[t], false, true);
    for (int t = ABOVE; t < CAKE_I4_TRIALS; t++)
        i4_try(&best, value, cake_i4_trials[t], true, true);
    for (int i = 0; i < 4; i++) {
        word[i] = words8_set(0);
        UNROLL for (int j = 0; j < SQUARE; j++)
        {
            const floats8 v =
                floats8_add(i4_codes(value[SQUARE * i + j], best.factor, true, true), floats8_set(8));
            word[i] = words8_or(word[i], words8_left(floats8_whole(v), 4 * j));
        }
    }
    i4_store(code, word);
    floats8_store(
        scales, floats8_choose(finite, floats8_only(floats8_mul(best.scale, most), used), floats8_set(NAN)));
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
