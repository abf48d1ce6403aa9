/* SPDX-License-Identifier: Apache-2.0
 *
 * Vectors of eight floats, by NEON, in two registers each: the functions that vec_avx512.h documents, with
 * the bits of those of AVX2. Invariant: a lane's result does not depend on its neighbours, and lanes after
 * the first n of a partial load are zero.
 */
#ifndef CAKE_KERNELS_CPU_VEC_H
#define CAKE_KERNELS_CPU_VEC_H

#include <arm_neon.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernels/tensor.h"

#define INLINE      static inline __attribute__((always_inline))
#define LANES       8
#define N_REGISTERS 16 /* of eight lanes */
#define UNROLL      _Pragma("GCC unroll 16")

#include "kernels/cpu/eight_neon.h"
#include "kernels/cpu/prefetch.h"

typedef floats8 vec;

#define VEC_KEEP(v) __asm__("" : "+w"((v).a), "+w"((v).b))

#define vec_set   floats8_set
#define vec_store floats8_store
#define vec_add   floats8_add
#define vec_mul   floats8_mul
#define vec_div   floats8_div
#define vec_fma   floats8_fma
#define vec_max   floats8_max
#define vec_min   floats8_min
#define vec_round floats8_round
BOTH_2(vec, vec_sub, vec, vsubq_f32)

INLINE vec vec_fma_sub(vec x, vec y, vec less)
{
    return (vec){vfmaq_f32(vnegq_f32(less.a), x.a, y.a), vfmaq_f32(vnegq_f32(less.b), x.b, y.b)};
}

INLINE vec vec_fma_less(vec x, vec y, vec sum)
{
    return (vec){vfmsq_f32(sum.a, x.a, y.a), vfmsq_f32(sum.b, x.b, y.b)};
}

INLINE vec vec_load(const float *p)
{
    return (vec){vld1q_f32(p), vld1q_f32(p + 4)};
}

INLINE vec vec_load_n(const float *p, int n)
{
    float room[LANES] = {0};
    if (n >= LANES)
        return vec_load(p);
    for (int i = 0; i < n; i++)
        room[i] = p[i];
    return vec_load(room);
}

INLINE void vec_store_n(float *p, vec v, int n)
{
    float room[LANES];
    if (n >= LANES) {
        vec_store(p, v);
        return;
    }
    vec_store(room, v);
    for (int i = 0; i < n; i++)
        p[i] = room[i];
}

INLINE vec vec_if_positive(vec v, vec x, vec y)
{
    return floats8_choose(floats8_greater(v, vec_set(0)), x, y);
}

INLINE vec vec_between(vec v, vec low, vec at, vec high)
{
    return floats8_choose(words8_and(floats8_at_most(low, at), floats8_at_most(at, high)), v,
                          vec_set(-__builtin_inff()));
}

/* v 2^n as a product of v and two powers, as AVX2 has it. */
INLINE float32x4_t floats4_scale(float32x4_t v, float32x4_t n)
{
    const int32x4_t whole = vcvtnq_s32_f32(n), half = vshrq_n_s32(whole, 1), bias = vdupq_n_s32(127);
    const int32x4_t first = vshlq_n_s32(vaddq_s32(half, bias), 23),
                    second = vshlq_n_s32(vaddq_s32(vsubq_s32(whole, half), bias), 23);
    return vmulq_f32(vmulq_f32(v, vreinterpretq_f32_s32(first)), vreinterpretq_f32_s32(second));
}

BOTH_2(vec, vec_scale, vec, floats4_scale)

INLINE float vec_sum(vec v)
{
    const float32x4_t four = vaddq_f32(v.a, v.b);
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

INLINE float vec_most(vec v)
{
    const float32x4_t four = floats4_max(v.a, v.b), two = floats4_max(four, vextq_f32(four, four, 2));
    return vgetq_lane_f32(floats4_max(two, vdupq_laneq_f32(two, 1)), 0);
}

#define FLOATS_FROM_HALF(bits) vcvt_f32_f16(vreinterpret_f16_u16(bits))
#define FLOATS_TO_HALF(v)      vreinterpret_u16_f16(vcvt_f16_f32(v))

/* LANES numbers of 16 bits as floats. */
INLINE vec vec_from_halves(uint16x8_t bits, cake_dtype dtype)
{
    if (dtype != CAKE_BF16)
        return (vec){FLOATS_FROM_HALF(vget_low_u16(bits)), FLOATS_FROM_HALF(vget_high_u16(bits))};
    return floats8_of((words8){vshll_n_u16(vget_low_u16(bits), 16), vshll_high_n_u16(bits, 16)});
}

INLINE vec vec_load_as(const void *data, cake_dtype dtype, size_t at, int n)
{
    if (dtype == CAKE_F32)
        return vec_load_n((const float *)data + at, n);
    const uint16_t *half = (const uint16_t *)data + at;
    uint16_t room[LANES] = {0};
    if (n < LANES)
        memcpy(room, half, (size_t)n * sizeof *half);
    return vec_from_halves(vld1q_u16(n < LANES ? room : half), dtype);
}

INLINE uint32x4_t bf16_of(float32x4_t v)
{
    const uint32x4_t bits = vreinterpretq_u32_f32(v), odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t up = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7FFF)));
    return vshrq_n_u32(vbslq_u32(vceqq_f32(v, v), up, vorrq_u32(bits, vdupq_n_u32(0x400000))), 16);
}

/* LANES BF16 numbers in words. */
BOTH_1(words8, vec_to_bf16, vec, bf16_of)

INLINE uint16x8_t halves_of(vec v, cake_dtype dtype)
{
    const words8 bits = dtype == CAKE_BF16 ? vec_to_bf16(v) : words8_set(0);
    return dtype == CAKE_BF16 ? vuzp1q_u16(AS_HALVES(bits.a), AS_HALVES(bits.b))
                              : vcombine_u16(FLOATS_TO_HALF(v.a), FLOATS_TO_HALF(v.b));
}

INLINE void vec_store_as(void *data, cake_dtype dtype, size_t at, vec v, int n)
{
    if (dtype == CAKE_F32) {
        vec_store_n((float *)data + at, v, n);
        return;
    }
    uint16_t *half = (uint16_t *)data + at, room[LANES];
    vst1q_u16(n < LANES ? room : half, halves_of(v, dtype));
    if (n < LANES)
        memcpy(half, room, (size_t)n * sizeof *half);
}

INLINE void vec_store_pairs(uint32_t *to, vec even, vec odd)
{
    words8_store(to, words8_or(vec_to_bf16(even), words8_left(vec_to_bf16(odd), 16)));
}

INLINE vec vec_half(vec pairs, bool odd)
{
    return floats8_only(pairs, words8_set(odd ? (int)0xFFFF0000 : 0xFFFF));
}

INLINE void vec_split(vec pairs, vec *even, vec *odd)
{
    *even = floats8_of(words8_left(floats8_words(pairs), 16));
    *odd = vec_half(pairs, true);
}

INLINE void vec_load_pair(const char *p, cake_dtype dtype, vec *low, vec *high)
{
    if (dtype == CAKE_F32) {
        *low = vec_load((const float *)p);
        *high = vec_load((const float *)p + LANES);
    } else if (dtype == CAKE_BF16) {
        vec_split(vec_load((const float *)p), low, high);
    } else {
        *low = vec_from_halves(vld1q_u16((const uint16_t *)p), dtype);
        *high = vec_from_halves(vld1q_u16((const uint16_t *)p + LANES), dtype);
    }
}

/* ---- whole numbers, for int8.h and codes_gemm.h */

typedef words8 wholes;

#define MAX_WHOLES(x, y)      FROM_SIGNED(vmaxq_s32(AS_SIGNED(x), AS_SIGNED(y)))
#define FLOATS_OF_WHOLES(v)   vcvtq_f32_s32(AS_SIGNED(v))
#define MULTIPLY_WHOLES(x, y) vmulq_u32(x, y)
#define HIGH_WHOLES(v)        FROM_SIGNED(vshrq_n_s32(AS_SIGNED(v), 16))
#define ADD_SHORTS(x, y)      FROM_HALVES(vaddq_u16(AS_HALVES(x), AS_HALVES(y)))
#define SUB_SHORTS(x, y)      FROM_HALVES(vsubq_u16(AS_HALVES(x), AS_HALVES(y)))
#define MULTIPLY_SHORTS(x, y) FROM_HALVES(vmulq_u16(AS_HALVES(x), AS_HALVES(y)))
#define SIZE_BYTES(v)         FROM_SIGNED_BYTES(vabsq_s8(AS_SIGNED_BYTES(v)))
#define HIGH_BYTES(v)         FROM_HALVES(vshrq_n_u16(AS_HALVES(v), 8))

#define whole_set     words8_set
#define whole_load    words8_load
#define whole_round   floats8_whole
#define whole_left(v) words8_left(v, 16)
#define bytes_set     words8_set_bytes
#define bytes_and     words8_and
#define bytes_or      words8_or
#define bytes_xor     words8_xor
BOTH_2(wholes, whole_add, wholes, vaddq_u32)
BOTH_2(wholes, whole_sub, wholes, vsubq_u32)
BOTH_2(wholes, whole_max, wholes, MAX_WHOLES)
BOTH_2(wholes, whole_multiply, wholes, MULTIPLY_WHOLES)
BOTH_1(wholes, whole_high, wholes, HIGH_WHOLES)
BOTH_1(vec, whole_float, wholes, FLOATS_OF_WHOLES)
BOTH_2(wholes, shorts_add, wholes, ADD_SHORTS)
BOTH_2(wholes, shorts_sub, wholes, SUB_SHORTS)
BOTH_2(wholes, shorts_multiply, wholes, MULTIPLY_SHORTS)
BOTH_1(wholes, bytes_size, wholes, SIZE_BYTES)
BOTH_1(wholes, whole_high_bytes, wholes, HIGH_BYTES)

INLINE wholes shorts_set(short x)
{
    return words8_set((int32_t)((uint32_t)(uint16_t)x * 0x10001));
}

INLINE wholes bytes_left(wholes v, const int n)
{
    return (wholes){FROM_HALVES(AS_HALVES(v.a) << (uint16_t)n), FROM_HALVES(AS_HALVES(v.b) << (uint16_t)n)};
}

INLINE wholes bytes_right(wholes v, const int n)
{
    return (wholes){FROM_HALVES(AS_HALVES(v.a) >> (uint16_t)n), FROM_HALVES(AS_HALVES(v.b) >> (uint16_t)n)};
}

INLINE wholes shorts_right(wholes v, const int n)
{
    return (wholes){FROM_SHORTS(AS_SHORTS(v.a) >> (int16_t)n), FROM_SHORTS(AS_SHORTS(v.b) >> (int16_t)n)};
}

#define whole_low_bytes(v) words8_and(v, words8_set(0x00FF00FF))

INLINE uint32x4_t pairs_of_shorts(uint32x4_t x, uint32x4_t y)
{
    const int16x8_t p = AS_SHORTS(x), q = AS_SHORTS(y);
    return FROM_SIGNED(vpaddq_s32(vmull_s16(vget_low_s16(p), vget_low_s16(q)), vmull_high_s16(p, q)));
}

/* Nothing that is multiplied here overflows 16 bits. */
INLINE uint32x4_t pairs_of_bytes(uint32x4_t x, uint32x4_t y)
{
    const uint8x16_t p = AS_BYTES(x);
    const int8x16_t q = AS_SIGNED_BYTES(y);
    const int16x8_t low =
                        vmulq_s16(vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(p))), vmovl_s8(vget_low_s8(q))),
                    high = vmulq_s16(vreinterpretq_s16_u16(vmovl_high_u8(p)), vmovl_high_s8(q));
    return FROM_SHORTS(vpaddq_s16(low, high));
}

INLINE uint32x4_t sign_of_bytes(uint32x4_t x, uint32x4_t w)
{
    const int8x16_t less = vshrq_n_s8(AS_SIGNED_BYTES(w), 7);
    return FROM_SIGNED_BYTES(vsubq_s8(veorq_s8(AS_SIGNED_BYTES(x), less), less));
}

INLINE uint32x4_t find_bytes(uint32x4_t table, uint32x4_t v)
{
    return FROM_BYTES(vqtbl1q_u8(AS_BYTES(table), vandq_u8(AS_BYTES(v), vdupq_n_u8(15))));
}

BOTH_2(wholes, whole_pairs, wholes, pairs_of_shorts)
BOTH_2(wholes, bytes_pairs, wholes, pairs_of_bytes)
BOTH_2(wholes, bytes_sign, wholes, sign_of_bytes)
BOTH_2(wholes, bytes_find, wholes, find_bytes)

INLINE wholes bytes_table(const int8_t *table)
{
    return (wholes){words4_load(table), words4_load(table)};
}

INLINE uint16x8_t whole_narrow(wholes v)
{
    return vuzp1q_u16(AS_HALVES(v.a), AS_HALVES(v.b));
}

INLINE void whole_to_bytes(int8_t *to, wholes v)
{
    vst1_s8(to, vreinterpret_s8_u8(vmovn_u16(whole_narrow(v))));
}

INLINE void whole_store_swapped(char *to, wholes v)
{
    static const uint8_t order[16] = {0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15};
    vst1q_u8((uint8_t *)to, vqtbl1q_u8(vreinterpretq_u8_u16(whole_narrow(v)), vld1q_u8(order)));
}

INLINE void whole_pair_sums(int32_t sum[2], wholes v)
{
    const int32x4_t four = AS_SIGNED(vaddq_u32(v.a, v.b));
    vst1_s32(sum, vget_low_s32(vpaddq_s32(four, four)));
}

INLINE wholes whole_from_shorts(const char *p)
{
    const uint16x8_t v = vld1q_u16((const uint16_t *)p);
    return (wholes){vmovl_u16(vget_low_u16(v)), vmovl_high_u16(v)};
}

INLINE wholes whole_from_bytes(const uint8_t *p)
{
    const uint16x8_t v = vmovl_u8(vld1_u8(p));
    return (wholes){vmovl_u16(vget_low_u16(v)), vmovl_high_u16(v)};
}

INLINE vec vec_load_bytes(const void *p, int n)
{
    int8_t room[LANES] = {0};
    if (n < LANES)
        memcpy(room, p, (size_t)n);
    const int16x8_t v = vmovl_s8(vld1_s8(n < LANES ? room : p));
    return (vec){vcvtq_f32_s32(vmovl_s16(vget_low_s16(v))), vcvtq_f32_s32(vmovl_high_s16(v))};
}

INLINE wholes whole_signed_byte(wholes v, const int i)
{
    const wholes up = words8_left(v, 24 - 8 * i);
    return (wholes){FROM_SIGNED(vshrq_n_s32(AS_SIGNED(up.a), 24)),
                    FROM_SIGNED(vshrq_n_s32(AS_SIGNED(up.b), 24))};
}

BOTH_2(wholes, whole_equal, wholes, vceqq_u32)

INLINE vec vec_load_e8m0(const uint8_t *p)
{
    const wholes v = whole_from_bytes(p), zero = whole_equal(v, whole_set(0)),
                 none = whole_equal(v, whole_set(255));
    const wholes bits = words8_or(words8_left(v, 23), words8_and(zero, whole_set(0x00400000)));
    return floats8_of(words8_or(bits, words8_and(none, whole_set(0x7FC00000))));
}

INLINE vec vec_load_e4m3(const uint8_t *p)
{
    const wholes v = whole_from_bytes(p), size = words8_and(v, whole_set(127)),
                 none = whole_equal(size, whole_set(127));
    const wholes sign = words8_left(words8_and(v, whole_set(128)), 24);
    const vec value = vec_mul(floats8_of(words8_left(size, 20)), vec_set(0x1p120F));
    return floats8_of(
        words8_or(words8_or(floats8_words(value), sign), words8_and(none, whole_set(0x7FC00000))));
}

INLINE int32_t whole_sum(wholes v)
{
    return (int32_t)vaddvq_u32(vaddq_u32(v.a, v.b));
}

INLINE int32_t whole_most(wholes v)
{
    return vmaxvq_s32(vmaxq_s32(AS_SIGNED(v.a), AS_SIGNED(v.b)));
}

#define whole_size(v) words8_and(floats8_words(v), words8_set(0x7FFFFFFF))

#endif
