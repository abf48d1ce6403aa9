/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of E4M3 codes for e4m3.h, with AVX-512: a value of k becomes floats.
 *
 * A block is a row of columns. Floats of 16 bits, which have one bit of exponent more, below the sign, are
 * what codes become first.
 */
#ifndef CAKE_KERNELS_CPU_E4M3_BLOCK_H
#define CAKE_KERNELS_CPU_E4M3_BLOCK_H

#define E4M3_DEPTH  1
#define E4M3_STEPS  1
#define E4M3_FACTOR 0x1p8F

INLINE int e4m3_at(int k, int column)
{
    (void)k;
    return column;
}

INLINE void e4m3_store_pair(char *block, int column, __m128i even, __m128i odd)
{
    _mm_storeu_si128((__m128i *)(block + column), even);
    _mm_storeu_si128((__m128i *)(block + column + 2 * LANES), odd);
}

INLINE void e4m3_load(vec value[2 * E4M3_STEPS], const char *block)
{
    __m512i v = _mm512_slli_epi16(_mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)block)), 7);
    v = _mm512_and_si512(v, _mm512_set1_epi16((short)0xBFFF));
    value[0] = _mm512_cvtph_ps(_mm512_castsi512_si256(v));
    value[1] = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(v, 1));
}

#endif
