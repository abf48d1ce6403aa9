/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of E4M3 codes for e4m3.h, with SVE: a value of k becomes floats.
 *
 * A block is a row of columns. With its sign extended and shifted, a code has its parts where a float has its
 * sign, the last four bits of its exponent and the first three of its fraction. Such a float may be denormal.
 */
#ifndef CAKE_KERNELS_CPU_E4M3_BLOCK_H
#define CAKE_KERNELS_CPU_E4M3_BLOCK_H

#define E4M3_DEPTH  1
#define E4M3_STEPS  1
#define E4M3_FACTOR 0x1p120F

INLINE int e4m3_at(int k, int column)
{
    (void)k;
    return column;
}

INLINE void e4m3_store_pair(char *block, int column, words4 even, words4 odd)
{
    words4_store(block + column, even);
    words4_store(block + column + 2 * LANES, odd);
}

INLINE vec e4m3_floats(const int8_t *code)
{
    const wholes bits = svlsl_n_s32_x(ALL, svld1sb_s32(ALL, code), 20);
    return WHOLES_VEC(svand_n_s32_x(ALL, bits, (int)0x87F00000));
}

INLINE void e4m3_load(vec value[2 * E4M3_STEPS], const char *block)
{
    value[0] = e4m3_floats((const int8_t *)block);
    value[1] = e4m3_floats((const int8_t *)block + LANES);
}

#endif
