/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of a GPU that is the host's: for kernels that run on the executor.
 */
#include "kernels/cuda/memory.h"

#include <stdlib.h>
#include <string.h>

void cake_cuda_put_rows(void *to, size_t to_step, const void *from, size_t from_step, size_t bytes, int n)
{
    for (int i = 0; i < n; i++)
        memcpy((char *)to + (size_t)i * to_step, (const char *)from + (size_t)i * from_step, bytes);
}

const cake_row *cake_cuda_rows(const cake_row *rows)
{
    return rows;
}

void *cake_cuda_workspace(void)
{
    static void *memory;
    return memory ? memory : (memory = malloc(CAKE_CUDA_WORKSPACE));
}
