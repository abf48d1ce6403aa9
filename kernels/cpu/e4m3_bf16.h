/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of E4M3 codes for e4m3.h, with AVX512-BF16: two values of k become pairs of BF16.
 *
 * The codes of both values of k of a column stand together; of each 16 bytes eight are of columns 4 i to
 * 4 i + 3 and eight of LANES + 4 i and so on, as _mm512_unpacklo_epi8 and _mm512_unpackhi_epi8 part them.
 * The high byte of BF16 is the sign and seven bits of the exponent, the low one its last bit and the
 * fraction. Codes below 8 have no leading one and are looked up.
 */
#ifndef CAKE_KERNELS_CPU_E4M3_BLOCK_H
#define CAKE_KERNELS_CPU_E4M3_BLOCK_H

#define E4M3_DEPTH  2
#define E4M3_STEPS  1
#define E4M3_FACTOR 1.0F

INLINE int e4m3_at(int k, int column)
{
    return 16 * (column % LANES / 4) + 8 * (column / LANES) + 2 * (column % 4) + k;
}

INLINE void e4m3_store_pair(char *block, int column, __m128i even, __m128i odd)
{
    const __m128i pairs[2] = {_mm_unpacklo_epi8(even, odd), _mm_unpackhi_epi8(even, odd)};
    UNROLL for (int i = 0; i < 2; i++)
    {
        char *to = block + 32 * i + column / 2;
        _mm_storel_epi64((__m128i *)to, pairs[i]);
        _mm_storel_epi64((__m128i *)(to + 16), _mm_unpackhi_epi64(pairs[i], pairs[i]));
    }
}

INLINE void e4m3_load(vec value[2 * E4M3_STEPS], const char *block)
{
    /* codes 0 to 7: multiples of 2^-9 */
    const __m512i low_bytes = _mm512_broadcast_i32x4(
        _mm_setr_epi8(0, 0, (char)0x80, (char)0xC0, 0, 0x20, 0x40, 0x60, 0, 0, 0, 0, 0, 0, 0, 0));
    const __m512i high_bytes = _mm512_broadcast_i32x4(
        _mm_setr_epi8(0, 0x3B, 0x3B, 0x3B, 0x3C, 0x3C, 0x3C, 0x3C, 0, 0, 0, 0, 0, 0, 0, 0));
    const __m512i codes = _mm512_loadu_si512(block);
    const __m512i size = _mm512_and_si512(codes, _mm512_set1_epi8(0x7F));
    const __mmask64 small = _mm512_testn_epi8_mask(codes, _mm512_set1_epi8(0x78));
    __m512i low = _mm512_and_si512(_mm512_slli_epi16(codes, 4), _mm512_set1_epi8((char)0xF0));
    __m512i high = _mm512_and_si512(_mm512_srli_epi16(size, 4), _mm512_set1_epi8(0x0F));
    high = _mm512_add_epi8(high, _mm512_set1_epi8(0x3C));
    low = _mm512_mask_shuffle_epi8(low, small, low_bytes, size);
    high = _mm512_mask_shuffle_epi8(high, small, high_bytes, size);
    high = _mm512_ternarylogic_epi32(high, codes, _mm512_set1_epi8((char)0x80), 0xF8); /* a | (b & c) */
    value[0] = _mm512_castsi512_ps(_mm512_unpacklo_epi8(low, high));
    value[1] = _mm512_castsi512_ps(_mm512_unpackhi_epi8(low, high));
}

#endif
