/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPUs of this machine in words, or why there are none. kernels/nodevice.c answers in builds without CUDA.
 */
#ifndef CAKE_KERNELS_CUDA_DEVICE_H
#define CAKE_KERNELS_CUDA_DEVICE_H

#include <stdint.h>

#include "base/buf.h"

/* Appends one line per GPU, or one line with the reason; each ends in a newline. Never fails. */
void cake_device_describe(cake_buf *out);
/* Bytes of memory of the GPU at that place of the bus ("0000:c1:00.0"); 0: unknown. */
int64_t cake_device_memory(const char *bus);

#endif
