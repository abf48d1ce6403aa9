/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows in int8: each group of CAKE_I8_GROUP values of k has a scale of its own, and a value is a byte from
 * -127 to 127 times that (symmetric, to nearest, ties to even).
 *
 * Products of such rows are part of the promise of kernels.h: int32 sums inside a group, which are exact in
 * any order, then sum = fma((float)group sum, scale of x * scale of W, sum), groups ascending from 0.
 */
#ifndef CAKE_KERNELS_INT8_H
#define CAKE_KERNELS_INT8_H

#include "kernels/tensor.h"

#define CAKE_I8_GROUP 128
#define CAKE_I8_LEAST                                                                                        \
    0x1p-100F /* groups whose largest value is smaller are zeros: 127 over it has to be finite */

/* Groups of n values; the last one may be shorter. */
static inline int cake_i8_groups(int n)
{
    return n / CAKE_I8_GROUP + (n % CAKE_I8_GROUP != 0);
}

/* Bytes of a row of n elements of a matrix as weight_pack takes it. A row of CAKE_I8 is the BF16 scales of
 * its groups, then n bytes, and one more if n is odd. */
size_t cake_row_bytes(cake_dtype dtype, int n);

/* The scale of a group is the BF16 nearest to its largest absolute value over 127 (measured: an error of 0.65
 * % of the values' root mean square where they are normally distributed, as with a float32 scale; the best of
 * 22 scales for each group makes that 0.64 %, which is not worth the time). A group with a value that is not
 * finite has the scale NaN, so that it shows in every product. row is aligned to 2 bytes; in [n] is of dtype
 * `from`. */
void cake_i8_from(void *row, const void *in, cake_dtype from, int n);
void cake_i8_to_f32(float *out, const void *row, int n);

#endif
