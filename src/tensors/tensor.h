/* SPDX-License-Identifier: Apache-2.0
 *
 * A tensor in a file: name, type, shape and place, and how its content is stored.
 */
#ifndef CAKE_TENSORS_TENSOR_H
#define CAKE_TENSORS_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "kernels/format.h"
#include "kernels/tensor.h"

#define CAKE_TENSOR_MAX_RANK 8

/* What a converter did to a tensor's content, undone while it is read: then all files of a model have the
 * same tensors, and nothing else knows of it. */
typedef enum cake_undo_kind {
    CAKE_UNDO_NONE,
    CAKE_UNDO_ORDER,    /* the file has the parts of the tensor in another order */
    CAKE_UNDO_PLUS_ONE, /* float32 elements are stored plus 1 */
    CAKE_UNDO_EXP,      /* ... as the negative of their exponential */
    CAKE_UNDO_CONSTANT, /* the one float32 element is not in the data, but here */
    CAKE_UNDO_N
} cake_undo_kind;

typedef struct cake_tensor_undo {
    cake_undo_kind kind;
    /* ORDER, and EXP if unit is not 0: behind `first` bytes there are units of `unit` bytes in groups of rows
     * x columns. The tensor has each group row by row, the file column by column. */
    int64_t first, unit, rows, columns;
    float value; /* CONSTANT */
} cake_tensor_undo;

typedef struct cake_tensor {
    char *name;                /* owned by the list */
    const char *dtype_name;    /* as in the file: "BF16" */
    bool readable;             /* dtype is supported and given in `dtype` */
    cake_dtype dtype;          /* F32 if there is a format */
    const cake_format *format; /* of blocks, as GGUF has them; NULL: elements of dtype */
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

/* Reads bytes of the file. */
typedef cake_err cake_tensor_undo_raw(void *self, int64_t at, void *into, size_t len);

/* Reads bytes [offset, offset + len) of the tensor's content. */
cake_err cake_tensor_undo_read(const cake_tensor *tensor, cake_tensor_undo_raw *raw, void *self,
                               int64_t offset, void *into, size_t len);

/* As JSON: an array of numbers, for a bundle's description. */
void cake_tensor_undo_add(const cake_tensor_undo *undo, cake_buf *out);
/* Reads it; false: it is none, or not one for a tensor of this shape and type. */
struct cake_json;
bool cake_tensor_undo_parse(const struct cake_json *node, cake_tensor *tensor);

#endif
