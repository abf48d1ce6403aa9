/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of the GPU that this rank computes on, and the stream that orders all work there.
 */
#ifndef CAKE_KERNELS_CUDA_MEMORY_H
#define CAKE_KERNELS_CUDA_MEMORY_H

#include <stddef.h>

#include "base/row.h"

/* n rows of `bytes` bytes from the host's memory to the GPU's, each so many bytes behind the one before; they are there
 * when it returns. By any thread. */
void cake_cuda_put_rows(void *to, size_t to_step, const void *from, size_t from_step, size_t bytes, int n);
/* What rows in the GPU's memory say, for the host to read. */
const cake_row *cake_cuda_rows(const cake_row *rows);
/* Memory of the GPU for what one operation keeps between two kernels: CAKE_CUDA_WORKSPACE bytes. */
void *cake_cuda_workspace(void);

#define CAKE_CUDA_WORKSPACE ((size_t)64 << 20)

#endif
