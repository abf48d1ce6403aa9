/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPUs of this machine in words, or why there are none. kernels/nodevice.c answers in builds without CUDA.
 */
#ifndef CAKE_KERNELS_CUDA_DEVICE_H
#define CAKE_KERNELS_CUDA_DEVICE_H

#include "base/buf.h"

/* Appends one line per GPU, or one line with the reason; each ends in a newline. Never fails. */
void cake_device_describe(cake_buf *out);

#endif
