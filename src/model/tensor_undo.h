/* SPDX-License-Identifier: Apache-2.0
 *
 * What a converter did to a tensor's content, undone while it is read: then all files of a model have the
 * same tensors, and nothing else knows of it.
 */
#ifndef CAKE_MODEL_TENSOR_UNDO_H
#define CAKE_MODEL_TENSOR_UNDO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

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
    /* ORDER: behind `first` bytes there are units of `unit` bytes in groups of rows x columns. The tensor has
     * each group row by row, the file column by column. */
    int64_t first, unit, rows, columns;
    float value; /* CONSTANT */
} cake_tensor_undo;

/* Reads bytes of the file. */
typedef cake_err cake_tensor_undo_raw(void *self, int64_t at, void *into, size_t len);

/* Reads bytes [offset, offset + len) of the tensor's content. */
struct cake_tensor;
cake_err cake_tensor_undo_read(const struct cake_tensor *tensor, cake_tensor_undo_raw *raw, void *self,
                               int64_t offset, void *into, size_t len);

/* As JSON: an array of numbers, for a bundle's description. */
void cake_tensor_undo_add(const cake_tensor_undo *undo, cake_buf *out);
/* Reads it; false: it is none, or not one for a tensor of this shape and type. */
struct cake_json;
bool cake_tensor_undo_parse(const struct cake_json *node, struct cake_tensor *tensor);

#endif
