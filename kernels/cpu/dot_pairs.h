/* SPDX-License-Identifier: Apache-2.0
 *
 * Int8 dot products without a CPU instruction for bytes: in 16 bits, pairs added to 32 (VPMADDWD). Products
 * of bytes in 16 bits (VPMADDUBSW) would saturate, or need signs moved from x to each weight, which costs as
 * much. Invariant: nothing saturates; dot_vnni.h has the same sums.
 */
#ifndef CAKE_KERNELS_CPU_DOT_H
#define CAKE_KERNELS_CPU_DOT_H

#include <string.h>

#define DOT_SIZE 2                            /* bytes that hold a value of x */
#define DOT_ROWS (N_REGISTERS == 32 ? 12 : 4) /* rows whose sums fit the registers, two vectors each */

#define DOT_BYTES   0 /* dot_add takes halves of 16 bits */
#define DOT_SIGNED  0
#define DOT_SQUARES 0
#define DOT_PARTS   2 /* of a step, in turn: their operands together would not fit the registers */

/* LANES times a part of four weights of a column, from 0 to 255: the first and the third, or the second and
 * the fourth. */
INLINE wholes dot_load(const char *w, const int part)
{
    return part ? whole_high_bytes(whole_load(w)) : whole_low_bytes(whole_load(w));
}

INLINE wholes dot_set(const char *x, const int part)
{
    int32_t two;
    memcpy(&two, x + 4 * part, sizeof two);
    return whole_set(two);
}

INLINE wholes dot_add(wholes sum, wholes w, wholes x)
{
    return whole_add(sum, whole_pairs(w, x));
}

/* LANES values of x as dot_set reads them. */
#define dot_store whole_store_swapped

#endif
