/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel table of GPUs, and the peak rates of the open GPU.
 */
#ifndef CAKE_KERNELS_CUDA_CUDA_H
#define CAKE_KERNELS_CUDA_CUDA_H

#include "kernels/device.h"
#include "kernels/kernels.h"
#include "kernels/peak.h"

extern const cake_kernels cake_kernels_cuda;
/* cake_device_rate of the open GPU (rate.c). */
double cake_cuda_rate(cake_peak_kind kind);

#endif
