/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands for kernels/cuda/cublaslt.c where there is no CUDA: our own kernel multiplies all rows.
 */
#include "kernels/cuda/cublaslt.h"

int cake_cublaslt_open(cake_buf *why)
{
    cake_buf_adds(why, "this program was built without CUDA");
    return 0;
}

void cake_cublaslt_close(void)
{
}

void cake_cublaslt_describe(cake_buf *out)
{
    cake_buf_adds(out, "no cuBLASLt: this program was built without CUDA");
}

void cake_cublaslt_select_algorithm(const cake_weight *w)
{
    (void)w;
}

bool cake_cublaslt_linear(float *out, const void *x, const cake_weight *w, const float *bias,
                          const float *residual, int n_row)
{
    (void)out, (void)x, (void)w, (void)bias, (void)residual, (void)n_row;
    return false;
}
