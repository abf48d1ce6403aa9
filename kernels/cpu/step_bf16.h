/* SPDX-License-Identifier: Apache-2.0
 *
 * The step of products with weights (linear.h), keys and values (attend.h, attend_prefill.h) on CPUs with
 * AVX512-BF16: two values of k for BF16 (VDPBF16PS), else as step_one.h.
 *
 * Invariant: x is rounded to BF16 (to nearest, ties to even) before it is multiplied by such weights; a step
 * is two fused multiply-adds, the odd k first, in which numbers below the smallest normal float are zero
 * (Intel SDM, VDPBF16PS). kernels/ref/ref.c does the same in plain C.
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

INLINE vec step_add(vec x, vec w, vec sum, cake_dtype dtype)
{
    if (dtype != CAKE_BF16)
        return vec_fma(x, w, sum);
    return _mm512_dpbf16_ps(sum, (__m512bh)_mm512_castps_si512(x), (__m512bh)_mm512_castps_si512(w));
}

INLINE void step_copy(float *to, const float *x, int n, cake_dtype dtype)
{
    if (dtype != CAKE_BF16) {
        memcpy(to, x, (size_t)n * sizeof *to);
        return;
    }
    uint16_t *pair = (uint16_t *)to;
    for (int k = 0; k < n; k += 2 * LANES) {
        vec low = vec_load_n(x + k, n - k),
            high = n - k > LANES ? vec_load_n(x + k + LANES, n - k - LANES) : vec_set(0);
        _mm512_storeu_si512(pair + k, (__m512i)_mm512_cvtne2ps_pbh(high, low));
    }
}

INLINE void step_store(float *to, vec *x, cake_dtype dtype)
{
    if (dtype != CAKE_BF16) {
        vec_store(to, x[0]);
        return;
    }
    const __m512i turns = _mm512_add_epi16(
        _mm512_set1_epi32(16 << 16), /* 0, 16, 1, 17, ... */
        _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                           _mm512_set1_epi32(0x10001)));
    __m512i rounded = (__m512i)_mm512_cvtne2ps_pbh(x[1], x[0]);
    vec pairs = _mm512_castsi512_ps(_mm512_permutexvar_epi16(turns, rounded));
    vec_store(to, pairs);
    vec_split(pairs, &x[0], &x[1]);
}

#endif
