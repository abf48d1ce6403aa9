/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes of matrices and packed rows in a GPU's memory; also for plans, which are made without a GPU.
 */
#include "kernels/cuda/layout.h"

#include <stdlib.h>

#include "base/arena.h"
#include "kernels/cuda/cublaslt.h"
#include "kernels/cuda/cuda.h"

size_t cake_cuda_weight_bytes(const cake_weight *w)
{
    return cake_arena_round((size_t)w->n_out * cake_cuda_step(w->dtype, w->n_in));
}

size_t cake_cuda_input_bytes(cake_dtype dtype, int n_in, int n_row)
{
    /* the product also reads padding rows after the last one */
    return cake_arena_round(((size_t)n_row + CAKE_PRODUCT_ROWS - 1) * cake_cuda_step(dtype, n_in));
}

int cake_cuda_code(const char *archs, int capability)
{
    int best = 0;
    char *end = NULL;
    for (const char *at = archs; *at; at = end) {
        long arch = strtol(at, &end, 10);
        if (end == at)
            break;
        bool only = *end == 'a' || *end == 'f';
        end += only;
        while (*end == ' ')
            end++;
        bool last = !*end; /* only the last architecture also has PTX */
        if (arch == capability || (!only && arch < capability && (arch / 10 == capability / 10 || last)))
            best = arch > best ? (int)arch : best;
    }
    return best;
}

static const cake_memory planned = {.name = "GPU memory"};

const cake_kernels cake_kernels_planned = {.name = "cuda",
                                           .memory = &planned,
                                           .weight_bytes = cake_cuda_weight_bytes,
                                           .input_bytes = cake_cuda_input_bytes};
