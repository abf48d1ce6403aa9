/* SPDX-License-Identifier: Apache-2.0
 *
 * Int8 dot products with SMMLA: each instruction adds the products of two rows of x with two columns, over
 * eight values of k, to the four sums of a square (Arm ARM, FEAT_I8MM). One row alone takes SDOT. Invariant:
 * dot_sdot.h has the same sums.
 */
#ifndef CAKE_KERNELS_CPU_DOT_SMMLA_H
#define CAKE_KERNELS_CPU_DOT_SMMLA_H

#include "kernels/cpu/dot_sdot.h"

#undef DOT_SQUARES
#define DOT_SQUARES 1

/* Eight values of k of LANES columns, two columns in each register. */
typedef struct dot_columns {
    uint32x4_t two[LANES / 2];
} dot_columns;

/* From the first four values of k of all columns, and the others. */
INLINE dot_columns dot_columns_of(wholes first, wholes second)
{
    return (dot_columns){{words4_low(first.a, second.a), words4_high(first.a, second.a),
                          words4_low(first.b, second.b), words4_high(first.b, second.b)}};
}

INLINE uint32x4_t dot_square(uint32x4_t sum, int8x16_t x, uint32x4_t w)
{
    return FROM_SIGNED(vmmlaq_s32(AS_SIGNED(sum), x, AS_SIGNED_BYTES(w)));
}

/* sum [2]: the squares of two rows with LANES columns; x, y: eight values of k of each row. */
INLINE void dot_add_squares(wholes *sum, const dot_columns *w, const char *x, const char *y)
{
    const int8x16_t rows = vcombine_s8(vld1_s8((const int8_t *)x), vld1_s8((const int8_t *)y));
    sum[0].a = dot_square(sum[0].a, rows, w->two[0]);
    sum[0].b = dot_square(sum[0].b, rows, w->two[1]);
    sum[1].a = dot_square(sum[1].a, rows, w->two[2]);
    sum[1].b = dot_square(sum[1].b, rows, w->two[3]);
}

/* Squares of two rows become the sums of each. */
INLINE void dot_end_squares(wholes *sum)
{
    const wholes s = sum[0], t = sum[1];
    sum[0] = (wholes){words4_low_pairs(s.a, s.b), words4_low_pairs(t.a, t.b)};
    sum[1] = (wholes){words4_high_pairs(s.a, s.b), words4_high_pairs(t.a, t.b)};
}

#endif
