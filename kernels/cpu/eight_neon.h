/* SPDX-License-Identifier: Apache-2.0
 *
 * Vectors of eight words of 32 bits, by NEON: the functions that eight_avx2.h documents. Invariant: no
 * operation crosses from one half of 128 bits to the other, but for words8_narrow.
 */
#ifndef CAKE_KERNELS_CPU_EIGHT_H
#define CAKE_KERNELS_CPU_EIGHT_H

#include <arm_neon.h>

typedef uint32x4_t words4;
typedef struct words8 {
    words4 a, b;
} words8;
typedef struct floats8 {
    float32x4_t a, b;
} floats8;

/* An operation of both halves, of as many operands. */
#define BOTH_1(type, name, from, operation)                                                                  \
    INLINE type name(from x)                                                                                 \
    {                                                                                                        \
        return (type){operation(x.a), operation(x.b)};                                                       \
    }
#define BOTH_2(type, name, from, operation)                                                                  \
    INLINE type name(from x, from y)                                                                         \
    {                                                                                                        \
        return (type){operation(x.a, y.a), operation(x.b, y.b)};                                             \
    }

/* Words as other numbers, for operations of these. */
#define AS_BYTES(v)        vreinterpretq_u8_u32(v)
#define AS_SIGNED_BYTES(v) vreinterpretq_s8_u32(v)
#define AS_HALVES(v)       vreinterpretq_u16_u32(v)
#define AS_SHORTS(v)       vreinterpretq_s16_u32(v)
#define AS_PAIRS(v)        vreinterpretq_u64_u32(v)
#define AS_SIGNED(v)       vreinterpretq_s32_u32(v)
#define FROM_BYTES         vreinterpretq_u32_u8
#define FROM_SIGNED_BYTES  vreinterpretq_u32_s8
#define FROM_HALVES        vreinterpretq_u32_u16
#define FROM_SHORTS        vreinterpretq_u32_s16
#define FROM_PAIRS         vreinterpretq_u32_u64
#define FROM_SIGNED        vreinterpretq_u32_s32

#define words4_load(p)           vld1q_u32((const uint32_t *)(p))
#define words4_store(p, v)       vst1q_u32((uint32_t *)(p), v)
#define words4_low               vzip1q_u32
#define words4_high              vzip2q_u32
#define words4_low_pairs(a, b)   FROM_PAIRS(vzip1q_u64(AS_PAIRS(a), AS_PAIRS(b)))
#define words4_high_pairs(a, b)  FROM_PAIRS(vzip2q_u64(AS_PAIRS(a), AS_PAIRS(b)))
#define words4_low_bytes(a, b)   FROM_BYTES(vzip1q_u8(AS_BYTES(a), AS_BYTES(b)))
#define words4_high_bytes(a, b)  FROM_BYTES(vzip2q_u8(AS_BYTES(a), AS_BYTES(b)))
#define words4_low_halves(a, b)  FROM_HALVES(vzip1q_u16(AS_HALVES(a), AS_HALVES(b)))
#define words4_high_halves(a, b) FROM_HALVES(vzip2q_u16(AS_HALVES(a), AS_HALVES(b)))
#define words4_equal_bytes(a, b) FROM_BYTES(vceqq_u8(AS_BYTES(a), AS_BYTES(b)))

INLINE words8 words8_load(const void *p)
{
    return (words8){words4_load(p), words4_load((const char *)p + 16)};
}

INLINE void words8_store(void *p, words8 v)
{
    words4_store(p, v.a);
    words4_store((char *)p + 16, v.b);
}

INLINE words8 words8_set(int32_t word)
{
    return (words8){vdupq_n_u32((uint32_t)word), vdupq_n_u32((uint32_t)word)};
}

INLINE words8 words8_set_bytes(char byte)
{
    const words4 all = FROM_BYTES(vdupq_n_u8((uint8_t)byte));
    return (words8){all, all};
}

BOTH_2(words8, words8_and, words8, vandq_u32)
BOTH_2(words8, words8_or, words8, vorrq_u32)
BOTH_2(words8, words8_xor, words8, veorq_u32)
BOTH_2(words8, words8_low, words8, words4_low)
BOTH_2(words8, words8_high, words8, words4_high)
BOTH_2(words8, words8_low_pairs, words8, words4_low_pairs)
BOTH_2(words8, words8_high_pairs, words8, words4_high_pairs)
BOTH_2(words8, words8_equal_bytes, words8, words4_equal_bytes)

#define words8_firsts(x, y)  ((words8){(x).a, (y).a})
#define words8_seconds(x, y) ((words8){(x).b, (y).b})

INLINE words8 words8_left(words8 v, const int n)
{
    return (words8){v.a << (uint32_t)n, v.b << (uint32_t)n};
}

INLINE words8 words8_right(words8 v, const int n)
{
    return (words8){v.a >> (uint32_t)n, v.b >> (uint32_t)n};
}

INLINE words8 words8_order(words8 v, const int8_t *order)
{
    const uint8x16_t by = vreinterpretq_u8_s8(vld1q_s8(order));
    return (words8){FROM_BYTES(vqtbl1q_u8(AS_BYTES(v.a), by)), FROM_BYTES(vqtbl1q_u8(AS_BYTES(v.b), by))};
}

INLINE bool words8_any(words8 v)
{
    return vmaxvq_u32(vorrq_u32(v.a, v.b)) != 0;
}

INLINE words8 words8_narrow(words8 x, words8 y)
{
    return (words8){FROM_HALVES(vuzp1q_u16(AS_HALVES(x.a), AS_HALVES(x.b))),
                    FROM_HALVES(vuzp1q_u16(AS_HALVES(y.a), AS_HALVES(y.b)))};
}

INLINE words4 words8_half(words8 v, const int second)
{
    return second ? v.b : v.a;
}

INLINE floats8 floats8_set(float x)
{
    return (floats8){vdupq_n_f32(x), vdupq_n_f32(x)};
}

INLINE void floats8_store(float *p, floats8 v)
{
    vst1q_f32(p, v.a);
    vst1q_f32(p + 4, v.b);
}

/* What x86 takes for a maximum: the second where either is NaN. */
INLINE float32x4_t floats4_max(float32x4_t x, float32x4_t y)
{
    return vbslq_f32(vcgtq_f32(x, y), x, y);
}

INLINE float32x4_t floats4_min(float32x4_t x, float32x4_t y)
{
    return vbslq_f32(vcltq_f32(x, y), x, y);
}

#define FLOATS_NEAREST(v) FROM_SIGNED(vcvtnq_s32_f32(v))

BOTH_2(floats8, floats8_add, floats8, vaddq_f32)
BOTH_2(floats8, floats8_mul, floats8, vmulq_f32)
BOTH_2(floats8, floats8_div, floats8, vdivq_f32)
BOTH_2(floats8, floats8_max, floats8, floats4_max)
BOTH_2(floats8, floats8_min, floats8, floats4_min)
BOTH_1(floats8, floats8_round, floats8, vrndnq_f32)
BOTH_1(floats8, floats8_size, floats8, vabsq_f32)
BOTH_1(words8, floats8_words, floats8, vreinterpretq_u32_f32)
BOTH_1(floats8, floats8_of, words8, vreinterpretq_f32_u32)
BOTH_1(words8, floats8_whole, floats8, FLOATS_NEAREST)
BOTH_2(words8, floats8_greater, floats8, vcgtq_f32)
BOTH_2(words8, floats8_at_most, floats8, vcleq_f32)

INLINE floats8 floats8_fma(floats8 x, floats8 y, floats8 sum)
{
    return (floats8){vfmaq_f32(sum.a, x.a, y.a), vfmaq_f32(sum.b, x.b, y.b)};
}

INLINE floats8 floats8_choose(words8 where, floats8 x, floats8 y)
{
    return (floats8){vbslq_f32(where.a, x.a, y.a), vbslq_f32(where.b, x.b, y.b)};
}

INLINE floats8 floats8_only(floats8 v, words8 where)
{
    return floats8_of(words8_and(floats8_words(v), where));
}

#endif
