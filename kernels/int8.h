/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows in int8: each group of CAKE_I8_GROUP values along k has its own scale; a value is an integer from -127
 * to 127 times that scale (symmetric, rounded to nearest, ties to even).
 *
 * Products of such rows keep the promise of kernels.h: int32 sums inside a group, which are exact in any
 * order, then sum = fma((float)group sum, scale of x * scale of W, sum), groups ascending from 0.
 */
#ifndef CAKE_KERNELS_INT8_H
#define CAKE_KERNELS_INT8_H

#include "kernels/tensor.h"

#define CAKE_I8_GROUP 128
#define CAKE_I8_LEAST                                                                                        \
    0x1p-100F /* groups whose largest value is smaller become zeros, since 127 / value must be finite */

/* Number of groups of n values; the last one may be shorter. */
static inline int cake_i8_groups(int n)
{
    return n / CAKE_I8_GROUP + (n % CAKE_I8_GROUP != 0);
}

/* Bytes of a row of n elements as weight_pack takes it. A row of CAKE_I8 is the BF16 scales of its groups,
 * then n bytes, and one padding byte if n is odd. */
size_t cake_row_bytes(cake_dtype dtype, int n);

/* Quantises a row [n] of dtype `from`; row is aligned to 2 bytes. A group's scale is the BF16 nearest to its
 * largest absolute value / 127. For normally distributed values the error measured is 0.65 % of their RMS, as
 * with a float32 scale; the best of 22 scales per group would give 0.64 %. A group with a non-finite value
 * gets the scale NaN, so that it shows in every product. */
void cake_i8_from(void *row, const void *in, cake_dtype from, int n);
void cake_i8_to_f32(float *out, const void *row, int n);

/* Quantises n values as one group, however many: the codes `step` bytes apart. Returns the scale. */
uint16_t cake_i8_line(int8_t *code, size_t step, const float *in, int n);

#endif
