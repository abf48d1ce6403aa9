/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of cuBLASLt that cublaslt.c calls, by their own names: the only access to the library.
 */
#ifndef CAKE_KERNELS_CUDA_CUBLASLT_API_H
#define CAKE_KERNELS_CUDA_CUBLASLT_API_H

#include <cublasLt.h>

#include "base/buf.h"

#define CAKE_LT_FUNCTIONS(X)                                                                                 \
    X(GetVersion)                                                                                            \
    X(GetStatusString)                                                                                       \
    X(Create)                                                                                                \
    X(Destroy)                                                                                               \
    X(MatmulDescCreate)                                                                                      \
    X(MatmulDescDestroy)                                                                                     \
    X(MatmulDescSetAttribute)                                                                                \
    X(MatrixLayoutCreate)                                                                                    \
    X(MatrixLayoutDestroy)                                                                                   \
    X(MatrixLayoutSetAttribute)                                                                              \
    X(MatmulPreferenceCreate)                                                                                \
    X(MatmulPreferenceDestroy)                                                                               \
    X(MatmulPreferenceSetAttribute)                                                                          \
    X(MatmulAlgoGetHeuristic)                                                                                \
    X(MatmulAlgoConfigGetAttribute)                                                                          \
    X(Matmul)

typedef struct cake_lt {
#define CAKE_LT_MEMBER(name) __typeof__(cublasLt##name) *name;
    CAKE_LT_FUNCTIONS(CAKE_LT_MEMBER)
#undef CAKE_LT_MEMBER
} cake_lt;

/* NULL: the library is not installed, or lacks one of them; the reason is appended to why. */
const cake_lt *cake_cublaslt_api_find(cake_buf *why);

#endif
