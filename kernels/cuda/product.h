/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of prompts' rows by cuBLASLt. kernels/cuda/noproduct.c answers in builds without it.
 */
#ifndef CAKE_KERNELS_CUDA_PRODUCT_H
#define CAKE_KERNELS_CUDA_PRODUCT_H

#include "base/buf.h"
#include "kernels/kernels.h"

#define CAKE_PRODUCT_ROWS 64 /* rows come in so many: those behind the last one are read, and not written */

/* Its version, 130100 for 13.1.0; 0: there is none, and the reason is appended to why. */
int cake_product_open(cake_buf *why);
void cake_product_close(void); /* not open is fine */
/* Appends which one it would be, or why there is none; no newline. Needs no GPU. */
void cake_product_describe(cake_buf *out);
/* As cake_kernels.settle: the first matrix of a shape has the algorithm of that shape tried on it. */
void cake_product_settle(const cake_weight *w);
/* As cake_cuda_linear, for any number of a prompt's rows; a row's bits depend on it and on the matrix only. False: the library
 * cannot, whatever the rows, and nothing was done. */
bool cake_product_linear(float *out, const void *x, const cake_weight *w, const float *bias,
                         const float *residual, int n_tok);

#endif
