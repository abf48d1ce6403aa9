/* SPDX-License-Identifier: Apache-2.0
 *
 * Vectors of as many floats as a register of SVE has, which the compiler must be told (-msve-vector-bits):
 * the functions that vec_avx512.h documents. Of sixteen floats they have the bits of AVX-512, of eight those
 * of AVX2. Invariant: a lane's result does not depend on its neighbours, and lanes after the first n of a
 * partial load are zero.
 */
#ifndef CAKE_KERNELS_CPU_VEC_H
#define CAKE_KERNELS_CPU_VEC_H

#include <arm_sve.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/tensor.h"

#define INLINE      static inline __attribute__((always_inline))
#define LANES       (__ARM_FEATURE_SVE_BITS / 32)
#define N_REGISTERS 32
#define UNROLL      _Pragma("GCC unroll 16")

#include "kernels/cpu/eight_neon.h"
#include "kernels/cpu/prefetch.h"

#define OF_ONE_REGISTER __attribute__((arm_sve_vector_bits(__ARM_FEATURE_SVE_BITS)))
typedef svfloat32_t vec OF_ONE_REGISTER;
typedef svint32_t wholes OF_ONE_REGISTER;
typedef svint16_t shorts OF_ONE_REGISTER;
typedef svbool_t lanes OF_ONE_REGISTER;

#ifdef __clang__ /* it takes no such operand, and needs no such help */
#define VEC_KEEP(v) ((void)(v))
#else
#define VEC_KEEP(v) __asm__("" : "+w"(v))
#endif
#define VEC_OF_SVE 1 /* dot_sdot.h */

#define ALL svptrue_b32()

INLINE lanes lanes_first(int n)
{
    return n >= LANES ? ALL : svwhilelt_b32_s32(0, n);
}

#define vec_store(p, v)        svst1_f32(ALL, p, v)
#define vec_store_n(p, v, n)   svst1_f32(lanes_first(n), p, v)
#define VEC_WHOLES(v)          svreinterpret_s32_f32(v)
#define WHOLES_VEC(v)          svreinterpret_f32_s32(v)
#define WHOLES_SHORTS(v)       svreinterpret_s16_s32(v)
#define SHORTS_WHOLES(v)       svreinterpret_s32_s16(v)
#define WHOLES_SIGNED_RIGHT(v) svasr_n_s32_x(ALL, v, 16)

INLINE vec vec_set(float x)
{
    return svdup_n_f32(x);
}

INLINE vec vec_load(const float *p)
{
    return svld1_f32(ALL, p);
}

INLINE vec vec_load_n(const float *p, int n)
{
    return svld1_f32(lanes_first(n), p);
}

/* Functions of one operand, and of two or three that one instruction takes. */
#define VEC_1(type, name, operand, result)                                                                   \
    INLINE type name(operand)                                                                                \
    {                                                                                                        \
        return result;                                                                                       \
    }
#define VEC_2(type, name, instruction)                                                                       \
    INLINE type name(type x, type y)                                                                         \
    {                                                                                                        \
        return instruction(ALL, x, y);                                                                       \
    }
#define VEC_3(name, instruction)                                                                             \
    INLINE vec name(vec x, vec y, vec sum)                                                                   \
    {                                                                                                        \
        return instruction(ALL, sum, x, y);                                                                  \
    }
VEC_1(vec, vec_round, vec v, svrintn_f32_x(ALL, v))
VEC_2(vec, vec_add, svadd_f32_x)
VEC_2(vec, vec_sub, svsub_f32_x)
VEC_2(vec, vec_mul, svmul_f32_x)
VEC_2(vec, vec_div, svdiv_f32_x)
VEC_3(vec_fma, svmla_f32_x)
VEC_3(vec_fma_sub, svnmls_f32_x)
VEC_3(vec_fma_less, svmls_f32_x)

INLINE vec vec_max(vec x, vec y)
{
    return svsel_f32(svcmpgt_f32(ALL, x, y), x, y);
}

INLINE vec vec_min(vec x, vec y)
{
    return svsel_f32(svcmplt_f32(ALL, x, y), x, y);
}

INLINE vec vec_scale(vec v, vec n)
{
    return svscale_f32_x(ALL, v, svcvt_s32_f32_x(ALL, n));
}

INLINE vec vec_if_positive(vec v, vec x, vec y)
{
    return svsel_f32(svcmpgt_n_f32(ALL, v, 0), x, y);
}

INLINE vec vec_between(vec v, vec low, vec at, vec high)
{
    return svsel_f32(svcmple_f32(svcmple_f32(ALL, low, at), at, high), v, vec_set(-__builtin_inff()));
}

/* Lane i is taken together with i + 8, then i + 4, i + 2, i + 1. */
#define VEC_FOLD(name, operation)                                                                            \
    INLINE float name(vec v)                                                                                 \
    {                                                                                                        \
        if (LANES == 16)                                                                                     \
            v = operation(v, svext_f32(v, v, 8));                                                            \
        v = operation(v, svext_f32(v, v, 4));                                                                \
        v = operation(v, svext_f32(v, v, 2));                                                                \
        v = operation(v, svext_f32(v, v, 1));                                                                \
        return svlasta_f32(svpfalse_b(), v); /* the first lane */                                            \
    }
VEC_FOLD(vec_sum, vec_add)
VEC_FOLD(vec_most, vec_max)

/* ---- numbers of 16 bits, one in each lane */

INLINE vec vec_from_halves(svuint32_t bits, cake_dtype dtype)
{
    return dtype == CAKE_BF16 ? svreinterpret_f32_u32(svlsl_n_u32_x(ALL, bits, 16))
                              : svcvt_f32_f16_x(ALL, svreinterpret_f16_u32(bits));
}

INLINE vec vec_load_as(const void *data, cake_dtype dtype, size_t at, int n)
{
    if (dtype == CAKE_F32)
        return vec_load_n((const float *)data + at, n);
    return vec_from_halves(svld1uh_u32(lanes_first(n), (const uint16_t *)data + at), dtype);
}

INLINE vec vec_load_bytes(const void *p, int n)
{
    return svcvt_f32_s32_x(ALL, svld1sb_s32(lanes_first(n), p));
}

INLINE svuint32_t vec_to_bf16(vec v)
{
    const svuint32_t bits = svreinterpret_u32_f32(v),
                     odd = svand_n_u32_x(ALL, svlsr_n_u32_x(ALL, bits, 16), 1);
    const svuint32_t up = svadd_u32_x(ALL, bits, svadd_n_u32_x(ALL, odd, 0x7FFF));
    const svuint32_t all = svsel_u32(svcmpuo_f32(ALL, v, v), svorr_n_u32_x(ALL, bits, 0x400000), up);
    return svlsr_n_u32_x(ALL, all, 16);
}

INLINE void vec_store_as(void *data, cake_dtype dtype, size_t at, vec v, int n)
{
    if (dtype == CAKE_F32) {
        vec_store_n((float *)data + at, v, n);
        return;
    }
    const svuint32_t bits =
        dtype == CAKE_BF16 ? vec_to_bf16(v) : svreinterpret_u32_f16(svcvt_f16_f32_x(ALL, v));
    svst1h_u32(lanes_first(n), (uint16_t *)data + at, bits);
}

INLINE void vec_store_pairs(uint32_t *to, vec even, vec odd)
{
    svst1_u32(ALL, to, svorr_u32_x(ALL, vec_to_bf16(even), svlsl_n_u32_x(ALL, vec_to_bf16(odd), 16)));
}

INLINE vec vec_half(vec pairs, bool odd)
{
    return WHOLES_VEC(svand_n_s32_x(ALL, VEC_WHOLES(pairs), odd ? (int)0xFFFF0000 : 0xFFFF));
}

INLINE void vec_split(vec pairs, vec *even, vec *odd)
{
    *even = WHOLES_VEC(svlsl_n_s32_x(ALL, VEC_WHOLES(pairs), 16));
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
        *low = vec_load_as(p, dtype, 0, LANES);
        *high = vec_load_as(p, dtype, LANES, LANES);
    }
}

/* ---- whole numbers, for int8.h and codes_gemm.h */

#define whole_sum(v)         (int32_t) svaddv_s32(ALL, v)
#define whole_most(v)        svmaxv_s32(ALL, v)
#define whole_to_bytes(p, v) svst1b_s32(ALL, p, v)

INLINE wholes whole_set(int x)
{
    return svdup_n_s32(x);
}

INLINE wholes whole_load(const void *p)
{
    return svld1_s32(ALL, p);
}

VEC_1(wholes, whole_round, vec v, svcvt_s32_f32_x(ALL, vec_round(v)))
VEC_1(vec, whole_float, wholes v, svcvt_f32_s32_x(ALL, v))
VEC_1(wholes, whole_left, wholes v, svlsl_n_s32_x(ALL, v, 16))
VEC_1(wholes, whole_high, wholes v, WHOLES_SIGNED_RIGHT(v))
VEC_1(wholes, whole_size, vec v, svand_n_s32_x(ALL, VEC_WHOLES(v), 0x7FFFFFFF))
VEC_1(wholes, whole_from_bytes, const uint8_t *p, svld1ub_s32(ALL, p))
VEC_1(wholes, whole_from_shorts, const char *p, svld1uh_s32(ALL, (const uint16_t *)p))
VEC_2(wholes, whole_add, svadd_s32_x)
VEC_2(wholes, whole_sub, svsub_s32_x)
VEC_2(wholes, whole_max, svmax_s32_x)
VEC_2(wholes, whole_multiply, svmul_s32_x)
VEC_2(wholes, bytes_and, svand_s32_x)
VEC_2(wholes, bytes_or, svorr_s32_x)
VEC_2(wholes, bytes_xor, sveor_s32_x)

INLINE wholes shorts_set(short x)
{
    return SHORTS_WHOLES(svdup_n_s16(x));
}

INLINE wholes bytes_set(char x)
{
    return svreinterpret_s32_s8(svdup_n_s8((int8_t)x));
}

INLINE wholes shorts_multiply(wholes x, wholes y)
{
    return SHORTS_WHOLES(svmul_s16_x(svptrue_b16(), WHOLES_SHORTS(x), WHOLES_SHORTS(y)));
}

INLINE wholes bytes_left(wholes v, const int n)
{
    return SHORTS_WHOLES(svlsl_n_s16_x(svptrue_b16(), WHOLES_SHORTS(v), (uint16_t)n));
}

INLINE wholes bytes_right(wholes v, const int n)
{
    const svuint16_t halves = svreinterpret_u16_s32(v);
    return svreinterpret_s32_u16(svlsr_n_u16_x(svptrue_b16(), halves, (uint16_t)n));
}

INLINE wholes whole_pairs(wholes x, wholes y)
{
    const wholes low = svmul_s32_x(ALL, svexth_s32_x(ALL, x), svexth_s32_x(ALL, y));
    return svmla_s32_x(ALL, low, WHOLES_SIGNED_RIGHT(x), WHOLES_SIGNED_RIGHT(y));
}

INLINE wholes bytes_table(const int8_t *table)
{
    return svreinterpret_s32_s8(svld1rq_s8(svptrue_b8(), table));
}

INLINE wholes bytes_find(wholes table, wholes v)
{
    return svreinterpret_s32_s8(svtbl_s8(svreinterpret_s8_s32(table), svreinterpret_u8_s32(v)));
}

INLINE void whole_pair_sums(int32_t sum[2], wholes v)
{
    const svbool_t second = svcmpne_n_s32(ALL, svand_n_s32_x(ALL, svindex_s32(0, 1), 2), 0);
    sum[1] = (int32_t)svaddv_s32(second, v);
    sum[0] = (int32_t)svaddv_s32(ALL, v) - sum[1];
}

INLINE wholes whole_signed_byte(wholes v, const int i)
{
    return svasr_n_s32_x(ALL, svlsl_n_s32_x(ALL, v, (uint32_t)(24 - 8 * i)), 24);
}

INLINE vec vec_load_e8m0(const uint8_t *p)
{
    const wholes v = whole_from_bytes(p);
    wholes bits = svlsl_n_s32_x(ALL, v, 23);
    bits = svsel_s32(svcmpeq_n_s32(ALL, v, 0), whole_set(0x00400000), bits);
    return WHOLES_VEC(svsel_s32(svcmpeq_n_s32(ALL, v, 255), whole_set(0x7FC00000), bits));
}

INLINE vec vec_load_e4m3(const uint8_t *p)
{
    const wholes v = whole_from_bytes(p), size = svand_n_s32_x(ALL, v, 127);
    const wholes sign = svlsl_n_s32_x(ALL, svand_n_s32_x(ALL, v, 128), 24);
    const vec value = vec_mul(WHOLES_VEC(svlsl_n_s32_x(ALL, size, 20)), vec_set(0x1p120F));
    const wholes bits = bytes_or(VEC_WHOLES(value), sign);
    return WHOLES_VEC(svsel_s32(svcmpeq_n_s32(ALL, size, 127), whole_set(0x7FC00000), bits));
}

#endif
