/* SPDX-License-Identifier: Apache-2.0
 *
 * Vectors of sixteen floats, by AVX-512. linear.h, row_ops.h and attend.h are written with these functions;
 * vec_avx2.h has the same ones. Invariant: a lane's result does not depend on its neighbours, and lanes after
 * the first n of a partial load are zero.
 */
#ifndef CAKE_KERNELS_CPU_VEC_H
#define CAKE_KERNELS_CPU_VEC_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/tensor.h"

#define INLINE      static inline __attribute__((always_inline))
#define LANES       16
#define N_REGISTERS 32
#define UNROLL      _Pragma("GCC unroll 16")

#include "kernels/cpu/eight_avx2.h"
#include "kernels/cpu/prefetch.h"

typedef __m512 vec;

/* The compiler does not look behind it: it neither moves nor computes again what v is made of. */
#define VEC_KEEP(v) __asm__("" : "+v"(v))

/* An operation that is one instruction is a name of its intrinsic. */
#define vec_set   _mm512_set1_ps
#define vec_load  _mm512_loadu_ps
#define vec_store _mm512_storeu_ps
#define vec_add   _mm512_add_ps
#define vec_sub   _mm512_sub_ps
#define vec_mul   _mm512_mul_ps
#define vec_div   _mm512_div_ps
/* a * b + c, rounded once; sub: a * b - c; less: c - a * b. */
#define vec_fma      _mm512_fmadd_ps
#define vec_fma_sub  _mm512_fmsub_ps
#define vec_fma_less _mm512_fnmadd_ps
/* The second where either is NaN. */
#define vec_max _mm512_max_ps
#define vec_min _mm512_min_ps
/* v * 2^n of whole n */
#define vec_scale _mm512_scalef_ps

INLINE __mmask16 vec_mask(int n)
{
    return (__mmask16)(n >= LANES ? 0xFFFF : (1u << n) - 1);
}

INLINE vec vec_load_n(const float *p, int n)
{
    return _mm512_maskz_loadu_ps(vec_mask(n), p);
}

INLINE void vec_store_n(float *p, vec v, int n)
{
    _mm512_mask_storeu_ps(p, vec_mask(n), v);
}

/* a where v > 0, else b */
INLINE vec vec_if_positive(vec v, vec a, vec b)
{
    return _mm512_mask_mov_ps(b, _mm512_cmp_ps_mask(v, vec_set(0), _CMP_GT_OQ), a);
}

/* v where low <= at <= high, else -infinity. */
INLINE vec vec_between(vec v, vec low, vec at, vec high)
{
    __mmask16 in = _mm512_cmp_ps_mask(low, at, _CMP_LE_OQ) & _mm512_cmp_ps_mask(at, high, _CMP_LE_OQ);
    return _mm512_mask_mov_ps(vec_set(-__builtin_inff()), in, v);
}

#define vec_round(v) _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)

/* Folds halves: lane i is added to i + 8, then i + 4, i + 2, i + 1. */
INLINE float vec_sum(vec v)
{
    __m256 a = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}

INLINE float vec_most(vec v)
{
    __m256 a = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_movehdup_ps(b)));
}

#define vec_from_bf16(half) _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16))

/* Elements [at, at + n) of data; no byte after them is read. */
INLINE vec vec_load_as(const void *data, cake_dtype dtype, size_t at, int n)
{
    if (dtype == CAKE_F32)
        return vec_load_n((const float *)data + at, n);
    const uint16_t *half = (const uint16_t *)data + at;
    __m256i bits =
        n >= LANES ? _mm256_loadu_si256((const __m256i *)half) : _mm256_maskz_loadu_epi16(vec_mask(n), half);
    return dtype == CAKE_BF16 ? vec_from_bf16(bits) : _mm512_cvtph_ps(bits);
}

/* n signed bytes as floats; no byte after them is read. */
INLINE vec vec_load_bytes(const void *p, int n)
{
    __m128i bytes = n >= LANES ? _mm_loadu_si128((const __m128i *)p) : _mm_maskz_loadu_epi8(vec_mask(n), p);
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
}

INLINE __m256i vec_to_bf16(vec v)
{
    __m512i bits = _mm512_castps_si512(v);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i up = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
    __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    up = _mm512_mask_or_epi32(up, nan, bits, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(up, 16));
}

INLINE void vec_store_as(void *data, cake_dtype dtype, size_t at, vec v, int n)
{
    if (dtype == CAKE_F32) {
        vec_store_n((float *)data + at, v, n);
        return;
    }
    __m256i bits = dtype == CAKE_BF16 ? vec_to_bf16(v)
                                      : _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_mask_storeu_epi16((uint16_t *)data + at, vec_mask(n), bits);
}

/* LANES pairs: of each the even element below the odd one. */
INLINE void vec_store_pairs(uint32_t *to, vec even, vec odd)
{
    __m512i low = _mm512_cvtepu16_epi32(vec_to_bf16(even)), high = _mm512_cvtepu16_epi32(vec_to_bf16(odd));
    _mm512_storeu_si512(to, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
}

/* A vector of pairs of BF16 as two of floats. half: only the even elements of the pairs, or only the odd
 * ones; the others become zeros. */
INLINE void vec_split(vec pairs, vec *even, vec *odd)
{
    __m512i bits = _mm512_castps_si512(pairs);
    *even = _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
    *odd = _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32((int)0xFFFF0000)));
}

INLINE vec vec_half(vec pairs, bool odd)
{
    __m512i mask = _mm512_set1_epi32(odd ? (int)0xFFFF0000 : 0xFFFF);
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(pairs), mask));
}

/* 2 * LANES packed weights of one k: columns 0 to LANES - 1 in *low, the others in *high. BF16 columns are
 * interleaved in memory, so that a shift and a mask convert them. */
INLINE void vec_load_pair(const char *p, cake_dtype dtype, vec *low, vec *high)
{
    if (dtype == CAKE_F32) {
        *low = _mm512_loadu_ps(p);
        *high = _mm512_loadu_ps(p + 64);
    } else if (dtype == CAKE_BF16) {
        vec_split(_mm512_loadu_ps(p), low, high);
    } else {
        *low = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
        *high = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(p + 32)));
    }
}

/* ---- whole numbers, for int8.h and codes_gemm.h */

typedef __m512i wholes; /* int32 [LANES] */

#define whole_set  _mm512_set1_epi32
#define whole_add  _mm512_add_epi32
#define whole_max  _mm512_max_epi32
#define whole_sum  _mm512_reduce_add_epi32
#define whole_most _mm512_reduce_max_epi32
/* The nearest whole numbers, ties to even. */
#define whole_round _mm512_cvtps_epi32
#define whole_float _mm512_cvtepi32_ps
#define whole_load  _mm512_loadu_si512
/* Products of 16 bits, two added. */
#define whole_pairs   _mm512_madd_epi16
#define whole_sub     _mm512_sub_epi32
#define whole_left(v) _mm512_slli_epi32(v, 16)

/* Bytes and halves of 16 bits. Shifts are of halves. */
#define bytes_set       _mm512_set1_epi8
#define bytes_and       _mm512_and_si512
#define bytes_or        _mm512_or_si512
#define bytes_xor       _mm512_xor_si512
#define bytes_left      _mm512_slli_epi16
#define bytes_right     _mm512_srli_epi16
#define shorts_add      _mm512_add_epi16
#define shorts_sub      _mm512_sub_epi16
#define shorts_set      _mm512_set1_epi16
#define shorts_multiply _mm512_mullo_epi16
#define whole_multiply  _mm512_mullo_epi32
/* The upper halves of 16 bits, signed. */
#define whole_high(v) _mm512_srai_epi32(v, 16)
/* Entries of a table [16] by the low halves of bytes below 128. */
#define bytes_find _mm512_shuffle_epi8
/* Products of unsigned and signed bytes, two added in 16 bits. */
#define bytes_pairs _mm512_maddubs_epi16
#define bytes_size  _mm512_abs_epi8

/* x with the signs of w: where w is negative -x; where it is zero, anything. */
INLINE __m512i bytes_sign(__m512i x, __m512i w)
{
    return _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), _mm512_setzero_si512(), x);
}

INLINE wholes bytes_table(const int8_t *table)
{
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)table));
}

/* LANES numbers as bytes, which they fit. */
INLINE void whole_to_bytes(int8_t *to, wholes v)
{
    _mm_storeu_si128((__m128i *)to, _mm512_cvtepi32_epi8(v));
}

/* sum[0]: of the first two of every four lanes; sum[1]: of the others. */
INLINE void whole_pair_sums(int32_t sum[2], wholes v)
{
    const __m256i eight = _mm256_add_epi32(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    _mm_storel_epi64((__m128i *)sum, _mm_hadd_epi32(four, four));
}

/* LANES unsigned bytes. */
INLINE wholes whole_from_bytes(const uint8_t *p)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
}

/* LANES unsigned numbers of 16 bits. */
INLINE wholes whole_from_shorts(const char *p)
{
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
}

/* Byte i of each, with its sign. */
INLINE wholes whole_signed_byte(wholes v, const int i)
{
    return _mm512_srai_epi32(_mm512_slli_epi32(v, (unsigned)(24 - 8 * i)), 24);
}

/* LANES scales, with the bits of cake_e8m0_to_f32 and cake_e4m3_to_f32. */
INLINE vec vec_load_e8m0(const uint8_t *p)
{
    const wholes v = whole_from_bytes(p);
    wholes bits = _mm512_slli_epi32(v, 23);
    bits = _mm512_mask_mov_epi32(bits, _mm512_cmpeq_epi32_mask(v, whole_set(0)), whole_set(0x00400000));
    bits = _mm512_mask_mov_epi32(bits, _mm512_cmpeq_epi32_mask(v, whole_set(255)), whole_set(0x7FC00000));
    return _mm512_castsi512_ps(bits);
}

INLINE vec vec_load_e4m3(const uint8_t *p)
{
    const wholes v = whole_from_bytes(p), size = bytes_and(v, whole_set(127));
    const wholes sign = _mm512_slli_epi32(bytes_and(v, whole_set(128)), 24);
    vec value = vec_mul(_mm512_castsi512_ps(_mm512_slli_epi32(size, 20)), vec_set(0x1p120F));
    wholes bits = bytes_or(_mm512_castps_si512(value), sign);
    bits = _mm512_mask_mov_epi32(bits, _mm512_cmpeq_epi32_mask(size, whole_set(127)), whole_set(0x7FC00000));
    return _mm512_castsi512_ps(bits);
}

/* The bits of |v|, which are in the order of the values; those of NaN are above all others. */
#define whole_size(v) _mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(0x7FFFFFFF))

/* The low or the high byte of each 16 bits, unsigned. */
#define whole_low_bytes(v)  _mm512_and_si512(v, _mm512_set1_epi16(0xFF))
#define whole_high_bytes(v) _mm512_srli_epi16(v, 8)

/* LANES numbers in 16 bits each; of each four, the second and the third are swapped. */
INLINE void whole_store_swapped(char *to, wholes v)
{
    const __m128i order = _mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15);
    __m256i narrow = _mm512_cvtepi32_epi16(v);
    _mm256_storeu_si256((__m256i *)to, _mm256_shuffle_epi8(narrow, _mm256_broadcastsi128_si256(order)));
}

#endif
