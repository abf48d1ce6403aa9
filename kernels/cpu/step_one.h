/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of products with weights (linear.h), keys and values (attend.h, attend_prefill.h): one value of k per
 * step, in float32. Invariant: a step is one fused multiply-add.
 */
#ifndef CAKE_KERNELS_CPU_STEP_H
#define CAKE_KERNELS_CPU_STEP_H

#include <string.h>

#include "kernels/tensor.h"

#define STEP_OF(dtype) ((void)(dtype), 1)

/* 2 * LANES weights of one step: columns 0 to LANES - 1 in *low, the others in *high. */
#define step_load vec_load_pair

/* sum + x w */
INLINE vec step_add(vec x, vec w, vec sum, cake_dtype dtype)
{
    (void)dtype;
    return vec_fma(x, w, sum);
}

/* to = n values of x as step_add reads them: a float a step. */
INLINE void step_copy(float *to, const float *x, int n, cake_dtype dtype)
{
    (void)dtype;
    memcpy(to, x, (size_t)n * sizeof *to);
}

/* As step_copy, from STEP_OF(dtype) vectors with adjacent lanes, rounded as step_add reads them. */
INLINE void step_store(float *to, vec *x, cake_dtype dtype)
{
    (void)dtype;
    vec_store(to, x[0]);
}

#endif
