/* SPDX-License-Identifier: Apache-2.0
 *
 * Activation functions of gates, by cake_act.
 */
#ifndef CAKE_KERNELS_CUDA_ACTIVATION_H
#define CAKE_KERNELS_CUDA_ACTIVATION_H

#include "kernels/cuda/device_util.h"
#include "kernels/kernels.h"

__device__ __forceinline__ float passed(float x, float g, int act)
{
    float u = CAKE_GELU_SCALE * (g + CAKE_GELU_CUBE * g * g * g);
    return act == CAKE_ACT_SILU       ? g / (1 + expf(-g)) * x
           : act == CAKE_ACT_GELU     ? g / (1 + expf(-2 * u)) * x
           : act == CAKE_ACT_GELU_ERF ? 0.5F * g * (1 + erff(g * CAKE_ROOT_HALF)) * x
                                      : x / (1 + expf(-g));
}

#endif
