/* SPDX-License-Identifier: Apache-2.0
 *
 * A tensor in a file: name, type, shape and place, and what a converter did to its content.
 */
#ifndef CAKE_MODEL_TENSOR_H
#define CAKE_MODEL_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "kernels/tensor.h"
#include "model/tensor_undo.h"

#define CAKE_TENSOR_MAX_RANK 8

typedef struct cake_tensor {
    char *name;             /* owned by the list */
    const char *dtype_name; /* as in the file: "BF16" */
    bool readable;          /* dtype is supported and given in `dtype` */
    cake_dtype dtype;
    int rank;
    int64_t shape[CAKE_TENSOR_MAX_RANK];
    int64_t begin, end; /* byte offsets in the file */
    cake_tensor_undo undo;
} cake_tensor;

typedef struct cake_tensor_list {
    cake_tensor *at; /* [n], by begin */
    int n;
} cake_tensor_list;

void cake_tensor_list_free(cake_tensor_list *list);

#endif
