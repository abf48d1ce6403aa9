/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of operations on a GPU.
 */
#ifndef CAKE_KERNELS_CUDA_CUDA_H
#define CAKE_KERNELS_CUDA_CUDA_H

#include "kernels/kernels.h"

extern const cake_kernels cake_kernels_cuda;
/* The same for plans: what it takes of memory, and no operation. In builds without CUDA, too. */
extern const cake_kernels cake_kernels_planned;

#endif
