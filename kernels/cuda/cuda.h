/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of operations on a GPU.
 */
#ifndef CAKE_KERNELS_CUDA_CUDA_H
#define CAKE_KERNELS_CUDA_CUDA_H

#include "kernels/kernels.h"

extern const cake_kernels cake_kernels_cuda;
/* For plans: says what things take of the GPU's memory, and has no operations. Builds without CUDA have it,
 * too. */
extern const cake_kernels cake_kernels_planned;

#endif
