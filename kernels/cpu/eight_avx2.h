/* SPDX-License-Identifier: Apache-2.0
 *
 * Vectors of eight words of 32 bits, whatever LANES is, by AVX2: for what is transposed or quantised eight
 * rows at a time. eight_neon.h has the same functions. Invariant: no operation crosses from one half of 128
 * bits to the other, but for words8_narrow.
 */
#ifndef CAKE_KERNELS_CPU_EIGHT_H
#define CAKE_KERNELS_CPU_EIGHT_H

#include <immintrin.h>

typedef __m256i words8;
typedef __m128i words4;
typedef __m256 floats8;

#define words8_load(p)     _mm256_loadu_si256((const __m256i *)(p))
#define words8_store(p, v) _mm256_storeu_si256((__m256i *)(p), v)
#define words8_set         _mm256_set1_epi32
#define words8_set_bytes   _mm256_set1_epi8
#define words8_and         _mm256_and_si256
#define words8_or          _mm256_or_si256
#define words8_xor         _mm256_xor_si256
#define words8_left        _mm256_slli_epi32
#define words8_right       _mm256_srli_epi32

/* Words 0 and 1 of each half of a and b: a0 b0 a1 b1; high: words 2 and 3. Of words in pairs: a0 a1 b0 b1. */
#define words8_low        _mm256_unpacklo_epi32
#define words8_high       _mm256_unpackhi_epi32
#define words8_low_pairs  _mm256_unpacklo_epi64
#define words8_high_pairs _mm256_unpackhi_epi64
/* The first halves of a and b, or the second ones. */
#define words8_firsts(a, b)  _mm256_permute2x128_si256(a, b, 0x20)
#define words8_seconds(a, b) _mm256_permute2x128_si256(a, b, 0x31)

/* The bytes of each half in an order of 16. */
#define words8_order(v, order)                                                                               \
    _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(order))))

/* Where bytes are equal, ones. */
#define words8_equal_bytes _mm256_cmpeq_epi8
#define words8_any(v)      (_mm256_movemask_epi8(v) != 0) /* of vectors of comparisons */

/* The lower 16 bits of all words of a, then of b, side by side. */
INLINE words8 words8_narrow(words8 a, words8 b)
{
    const words8 low = words8_set(0xFFFF);
    return _mm256_permute4x64_epi64(_mm256_packus_epi32(words8_and(a, low), words8_and(b, low)), 0xD8);
}

/* The first half, or the second. */
INLINE words4 words8_half(words8 v, const int second)
{
    return second ? _mm256_extracti128_si256(v, 1) : _mm256_castsi256_si128(v);
}

#define words4_load(p)     _mm_loadu_si128((const __m128i *)(p))
#define words4_store(p, v) _mm_storeu_si128((__m128i *)(p), v)
/* As words8_low and its like, also of bytes and of 16 bits. */
#define words4_low_bytes   _mm_unpacklo_epi8
#define words4_high_bytes  _mm_unpackhi_epi8
#define words4_low_halves  _mm_unpacklo_epi16
#define words4_high_halves _mm_unpackhi_epi16
#define words4_low         _mm_unpacklo_epi32
#define words4_high        _mm_unpackhi_epi32
#define words4_low_pairs   _mm_unpacklo_epi64
#define words4_high_pairs  _mm_unpackhi_epi64

#define floats8_set      _mm256_set1_ps
#define floats8_store    _mm256_storeu_ps
#define floats8_add      _mm256_add_ps
#define floats8_mul      _mm256_mul_ps
#define floats8_div      _mm256_div_ps
#define floats8_fma      _mm256_fmadd_ps
#define floats8_max      _mm256_max_ps /* as vec_max */
#define floats8_min      _mm256_min_ps
#define floats8_round(v) _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define floats8_words    _mm256_castps_si256 /* their bits */
#define floats8_of       _mm256_castsi256_ps
#define floats8_whole    _mm256_cvtps_epi32

/* Where it holds, ones; of NaN nothing does. */
#define floats8_greater(a, b) _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_GT_OQ))
#define floats8_at_most(a, b) _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_LE_OQ))

/* a where `where` has ones, else b. */
INLINE floats8 floats8_choose(words8 where, floats8 a, floats8 b)
{
    return _mm256_blendv_ps(b, a, floats8_of(where));
}

/* v where `where` has ones, else 0. */
INLINE floats8 floats8_only(floats8 v, words8 where)
{
    return floats8_of(words8_and(floats8_words(v), where));
}

INLINE floats8 floats8_size(floats8 v)
{
    return floats8_of(words8_and(floats8_words(v), words8_set(0x7FFFFFFF)));
}

#endif
