/* SPDX-License-Identifier: Apache-2.0
 *
 * Vectors of eight floats, by AVX2, FMA and F16C: the functions that vec_avx512.h documents. Invariant: a
 * lane's result does not depend on its neighbours, and lanes after the first n of a partial load are zero.
 */
#ifndef CAKE_KERNELS_CPU_VEC_H
#define CAKE_KERNELS_CPU_VEC_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernels/tensor.h"

#define INLINE      static inline __attribute__((always_inline))
#define LANES       8
#define N_REGISTERS 16
#define UNROLL      _Pragma("GCC unroll 16")

#include "kernels/cpu/eight_avx2.h"
#include "kernels/cpu/prefetch.h"

typedef __m256 vec;

#define VEC_KEEP(v) __asm__("" : "+v"(v))

#define vec_set      _mm256_set1_ps
#define vec_load     _mm256_loadu_ps
#define vec_store    _mm256_storeu_ps
#define vec_add      _mm256_add_ps
#define vec_sub      _mm256_sub_ps
#define vec_mul      _mm256_mul_ps
#define vec_div      _mm256_div_ps
#define vec_fma      _mm256_fmadd_ps
#define vec_fma_sub  _mm256_fmsub_ps
#define vec_fma_less _mm256_fnmadd_ps
#define vec_max      _mm256_max_ps
#define vec_min      _mm256_min_ps

INLINE __m256i vec_mask(int n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

INLINE vec vec_load_n(const float *p, int n)
{
    return n >= LANES ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, vec_mask(n));
}

INLINE void vec_store_n(float *p, vec v, int n)
{
    if (n >= LANES)
        _mm256_storeu_ps(p, v);
    else
        _mm256_maskstore_ps(p, vec_mask(n), v);
}

/* a where v > 0, else b */
INLINE vec vec_if_positive(vec v, vec a, vec b)
{
    return _mm256_blendv_ps(b, a, _mm256_cmp_ps(v, vec_set(0), _CMP_GT_OQ));
}

INLINE vec vec_between(vec v, vec low, vec at, vec high)
{
    vec in = _mm256_and_ps(_mm256_cmp_ps(low, at, _CMP_LE_OQ), _mm256_cmp_ps(at, high, _CMP_LE_OQ));
    return _mm256_blendv_ps(vec_set(-__builtin_inff()), v, in);
}

#define vec_round(v) _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)

/* In two steps, since 2^n itself may be out of range where v * 2^n is not. |n| <= 252. */
INLINE vec vec_scale(vec v, vec n)
{
    __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1), bias = _mm256_set1_epi32(127);
    __m256i first = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
    __m256i second = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(whole, half), bias), 23);
    return _mm256_mul_ps(_mm256_mul_ps(v, _mm256_castsi256_ps(first)), _mm256_castsi256_ps(second));
}

INLINE float vec_sum(vec v)
{
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}

INLINE float vec_most(vec v)
{
    __m128 b = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    b = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_movehdup_ps(b)));
}

INLINE vec vec_load_as(const void *data, cake_dtype dtype, size_t at, int n)
{
    if (dtype == CAKE_F32)
        return vec_load_n((const float *)data + at, n);
    const uint16_t *half = (const uint16_t *)data + at;
    __m128i bits = _mm_setzero_si128();
    if (n >= LANES)
        bits = _mm_loadu_si128((const __m128i *)half);
    else
        memcpy(&bits, half, (size_t)n * sizeof *half);
    return dtype == CAKE_BF16 ? _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16))
                              : _mm256_cvtph_ps(bits);
}

INLINE vec vec_load_bytes(const void *p, int n)
{
    __m128i bytes = _mm_setzero_si128();
    if (n >= LANES)
        bytes = _mm_loadl_epi64((const __m128i *)p);
    else
        memcpy(&bytes, p, (size_t)n);
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
}

INLINE __m128i vec_to_bf16(vec v)
{
    __m256i bits = _mm256_castps_si256(v);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    up = _mm256_blendv_epi8(up, _mm256_or_si256(bits, _mm256_set1_epi32(0x400000)), nan);
    up = _mm256_srli_epi32(up, 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(up), _mm256_extracti128_si256(up, 1));
}

INLINE void vec_store_as(void *data, cake_dtype dtype, size_t at, vec v, int n)
{
    if (dtype == CAKE_F32) {
        vec_store_n((float *)data + at, v, n);
        return;
    }
    __m128i bits = dtype == CAKE_BF16 ? vec_to_bf16(v)
                                      : _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    uint16_t *half = (uint16_t *)data + at;
    if (n >= LANES)
        _mm_storeu_si128((__m128i *)half, bits);
    else
        memcpy(half, &bits, (size_t)n * sizeof *half);
}

INLINE void vec_store_pairs(uint32_t *to, vec even, vec odd)
{
    __m256i low = _mm256_cvtepu16_epi32(vec_to_bf16(even)), high = _mm256_cvtepu16_epi32(vec_to_bf16(odd));
    _mm256_storeu_si256((__m256i *)to, _mm256_or_si256(low, _mm256_slli_epi32(high, 16)));
}

INLINE void vec_split(vec pairs, vec *even, vec *odd)
{
    __m256i bits = _mm256_castps_si256(pairs);
    *even = _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
    *odd = _mm256_castsi256_ps(_mm256_and_si256(bits, _mm256_set1_epi32((int)0xFFFF0000)));
}

INLINE vec vec_half(vec pairs, bool odd)
{
    __m256i mask = _mm256_set1_epi32(odd ? (int)0xFFFF0000 : 0xFFFF);
    return _mm256_castsi256_ps(_mm256_and_si256(_mm256_castps_si256(pairs), mask));
}

INLINE void vec_load_pair(const char *p, cake_dtype dtype, vec *low, vec *high)
{
    if (dtype == CAKE_F32) {
        *low = _mm256_loadu_ps((const float *)p);
        *high = _mm256_loadu_ps((const float *)(p + 32));
    } else if (dtype == CAKE_BF16) {
        vec_split(_mm256_loadu_ps((const float *)p), low, high);
    } else {
        *low = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
        *high = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 16)));
    }
}

/* ---- whole numbers, for int8.h and codes_gemm.h */

typedef __m256i wholes;

#define whole_set     _mm256_set1_epi32
#define whole_add     _mm256_add_epi32
#define whole_max     _mm256_max_epi32
#define whole_round   _mm256_cvtps_epi32
#define whole_float   _mm256_cvtepi32_ps
#define whole_pairs   _mm256_madd_epi16
#define whole_sub     _mm256_sub_epi32
#define whole_left(v) _mm256_slli_epi32(v, 16)

#define bytes_set       _mm256_set1_epi8
#define bytes_and       _mm256_and_si256
#define bytes_or        _mm256_or_si256
#define bytes_xor       _mm256_xor_si256
#define bytes_left      _mm256_slli_epi16
#define bytes_right     _mm256_srli_epi16
#define shorts_right    _mm256_srai_epi16
#define bytes_find      _mm256_shuffle_epi8
#define bytes_pairs     _mm256_maddubs_epi16
#define shorts_add      _mm256_add_epi16
#define shorts_sub      _mm256_sub_epi16
#define shorts_set      _mm256_set1_epi16
#define shorts_multiply _mm256_mullo_epi16
#define bytes_size      _mm256_abs_epi8
#define bytes_sign      _mm256_sign_epi8

INLINE wholes bytes_table(const int8_t *table)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
}

/* LANES numbers as bytes, which they fit. */
INLINE void whole_to_bytes(int8_t *to, wholes v)
{
    const __m128i shorts = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storel_epi64((__m128i *)to, _mm_packs_epi16(shorts, shorts));
}

/* sum[0]: of the first two of every four lanes; sum[1]: of the others. */
INLINE void whole_pair_sums(int32_t sum[2], wholes v)
{
    const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storel_epi64((__m128i *)sum, _mm_hadd_epi32(four, four));
}

INLINE wholes whole_from_bytes(const uint8_t *p)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
}

INLINE wholes whole_from_shorts(const char *p)
{
    return _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
}

INLINE wholes whole_signed_byte(wholes v, const int i)
{
    return _mm256_srai_epi32(_mm256_slli_epi32(v, 24 - 8 * i), 24);
}

INLINE vec vec_load_e8m0(const uint8_t *p)
{
    const wholes v = whole_from_bytes(p), zero = _mm256_cmpeq_epi32(v, whole_set(0)),
                 none = _mm256_cmpeq_epi32(v, whole_set(255));
    wholes bits = bytes_or(_mm256_slli_epi32(v, 23), bytes_and(zero, whole_set(0x00400000)));
    return _mm256_castsi256_ps(bytes_or(bits, bytes_and(none, whole_set(0x7FC00000))));
}

INLINE vec vec_load_e4m3(const uint8_t *p)
{
    const wholes v = whole_from_bytes(p), size = bytes_and(v, whole_set(127)),
                 none = _mm256_cmpeq_epi32(size, whole_set(127));
    const wholes sign = _mm256_slli_epi32(bytes_and(v, whole_set(128)), 24);
    vec value = vec_mul(_mm256_castsi256_ps(_mm256_slli_epi32(size, 20)), vec_set(0x1p120F));
    return _mm256_castsi256_ps(
        bytes_or(bytes_or(_mm256_castps_si256(value), sign), bytes_and(none, whole_set(0x7FC00000))));
}

INLINE int32_t whole_sum(wholes v)
{
    __m128i b = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    b = _mm_add_epi32(b, _mm_shuffle_epi32(b, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(b, _mm_shuffle_epi32(b, 0xB1)));
}

INLINE int32_t whole_most(wholes v)
{
    __m128i b = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    b = _mm_max_epi32(b, _mm_shuffle_epi32(b, 0x4E));
    return _mm_cvtsi128_si32(_mm_max_epi32(b, _mm_shuffle_epi32(b, 0xB1)));
}

#define whole_size(v)       _mm256_and_si256(_mm256_castps_si256(v), _mm256_set1_epi32(0x7FFFFFFF))
#define whole_load(p)       _mm256_loadu_si256((const __m256i *)(p))
#define whole_low_bytes(v)  _mm256_and_si256(v, _mm256_set1_epi16(0xFF))
#define whole_high_bytes(v) _mm256_srli_epi16(v, 8)

INLINE void whole_store_swapped(char *to, wholes v)
{
    const __m128i order = _mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15);
    __m128i narrow = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storeu_si128((__m128i *)to, _mm_shuffle_epi8(narrow, order));
}

#endif
