/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of products with BFDOT, for weights (linear.h), keys and values (attend.h, attend_prefill.h): two
 * values of k per step for BF16, other types as in step_one.h.
 *
 * Invariant: x is rounded to BF16 (to nearest, ties to even) before a product with BF16 weights; a step is
 * that of kernels/ref/bfdot.h.
 */
#ifndef CAKE_KERNELS_CPU_STEP_H
#define CAKE_KERNELS_CPU_STEP_H

#include <string.h>

#include "kernels/tensor.h"

#define STEP_OF(dtype) ((dtype) == CAKE_BF16 ? 2 : 1)

INLINE void step_load(const char *p, cake_dtype dtype, vec *low, vec *high)
{
    vec_load_pair(p, dtype == CAKE_BF16 ? CAKE_F32 : dtype, low, high); /* a pair has the bits of a float */
}

INLINE float32x4_t step_pairs(float32x4_t sum, float32x4_t x, float32x4_t w)
{
    return vbfdotq_f32(sum, vreinterpretq_bf16_f32(w), vreinterpretq_bf16_f32(x));
}

INLINE vec step_add(vec x, vec w, vec sum, cake_dtype dtype)
{
    if (dtype != CAKE_BF16)
        return vec_fma(x, w, sum);
    return (vec){step_pairs(sum.a, x.a, w.a), step_pairs(sum.b, x.b, w.b)};
}

INLINE void step_copy(float *to, const float *x, int n, cake_dtype dtype)
{
    if (dtype != CAKE_BF16) {
        memcpy(to, x, (size_t)n * sizeof *to);
        return;
    }
    for (int k = 0; k < n; k += LANES)
        vst1q_u16((uint16_t *)to + k, halves_of(vec_load_n(x + k, n - k), CAKE_BF16));
}

INLINE void step_store(float *to, vec *x, cake_dtype dtype)
{
    if (dtype != CAKE_BF16) {
        vec_store(to, x[0]);
        return;
    }
    vec_store_pairs((uint32_t *)(void *)to, x[0], x[1]);
    vec_split(vec_load(to), &x[0], &x[1]);
}

#endif
