/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of E4M3 codes for e4m3.h, with vectors of eight lanes: two values of k become floats.
 *
 * A word of a block has the codes of column c of k in byte 3 and of k + 1 in byte 2, and those of column
 * LANES + c in bytes 1 and 0: a shift brings each to where a float has its sign, the last four bits of its
 * exponent and the first three of its fraction. Such a float may be denormal.
 */
#ifndef CAKE_KERNELS_CPU_E4M3_BLOCK_H
#define CAKE_KERNELS_CPU_E4M3_BLOCK_H

#define E4M3_DEPTH  2
#define E4M3_STEPS  2
#define E4M3_FACTOR 0x1p120F

INLINE int e4m3_at(int k, int column)
{
    return 4 * (column % LANES) + (column < LANES ? 3 : 1) - k;
}

INLINE void e4m3_store_pair(char *block, int column, words4 even, words4 odd)
{
    const words4 low = words4_low_bytes(odd, even), high = words4_high_bytes(odd, even);
    words4_store(block + column, words4_low_halves(high, low));
    words4_store(block + column + 16, words4_high_halves(high, low));
}

INLINE void e4m3_load(vec value[2 * E4M3_STEPS], const char *block)
{
    const wholes bits = whole_set((int)0x87F00000), codes = whole_load(block);
    const wholes even = shorts_right(codes, 4), odd = shorts_right(bytes_left(codes, 8), 4);
    value[0] = floats8_of(bytes_and(even, bits));
    value[1] = floats8_of(bytes_and(whole_left(even), bits));
    value[2] = floats8_of(bytes_and(odd, bits));
    value[3] = floats8_of(bytes_and(whole_left(odd), bits));
}

#endif
