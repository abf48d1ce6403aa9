/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of prompts' rows by cuBLASLt.
 */
#ifndef CAKE_KERNELS_CUDA_CUBLASLT_H
#define CAKE_KERNELS_CUDA_CUBLASLT_H

#include "base/buf.h"
#include "kernels/kernels.h"

/* Rows are padded to multiples of this: padding rows are read, and their results dropped. */
#define CAKE_PRODUCT_ROWS 64

/* Opens cuBLASLt. Returns its version, 130100 for 13.1.0; 0: not available, and the reason is appended to
 * why. */
int cake_cublaslt_open(cake_buf *why);
void cake_cublaslt_close(void); /* not open is fine */
/* Appends which cuBLASLt would be used, or why there is none; no newline. Needs no GPU. */
void cake_cublaslt_describe(cake_buf *out);
/* cake_kernels.select_algorithm. The first matrix of each shape is used for the trial. */
void cake_cublaslt_select_algorithm(const cake_weight *w);
/* Like cake_cuda_linear, for any number of prompt rows. A row's bits depend on the row and the matrix only.
 * False: the library cannot multiply by this matrix, whatever the rows, and nothing was done. */
bool cake_cublaslt_linear(float *out, const void *x, const cake_weight *w, const float *bias,
                          const float *residual, int n_row);

#endif
