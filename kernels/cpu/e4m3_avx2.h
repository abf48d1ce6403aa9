/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of E4M3 codes for e4m3.h, with AVX2: two values of k become floats.
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

INLINE void e4m3_store_pair(char *block, int column, __m128i even, __m128i odd)
{
    const __m128i low = _mm_unpacklo_epi8(odd, even), high = _mm_unpackhi_epi8(odd, even);
    _mm_storeu_si128((__m128i *)(block + column), _mm_unpacklo_epi16(high, low));
    _mm_storeu_si128((__m128i *)(block + column) + 1, _mm_unpackhi_epi16(high, low));
}

INLINE void e4m3_load(vec value[2 * E4M3_STEPS], const char *block)
{
    const __m256i bits = _mm256_set1_epi32((int)0x87F00000);
    const __m256i codes = _mm256_loadu_si256((const __m256i *)block);
    const __m256i even = _mm256_srai_epi16(codes, 4), odd = _mm256_srai_epi16(_mm256_slli_epi16(codes, 8), 4);
    value[0] = _mm256_castsi256_ps(_mm256_and_si256(even, bits));
    value[1] = _mm256_castsi256_ps(_mm256_and_si256(_mm256_slli_epi32(even, 16), bits));
    value[2] = _mm256_castsi256_ps(_mm256_and_si256(odd, bits));
    value[3] = _mm256_castsi256_ps(_mm256_and_si256(_mm256_slli_epi32(odd, 16), bits));
}

#endif
