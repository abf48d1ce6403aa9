/* SPDX-License-Identifier: Apache-2.0
 *
 * The streamed weights of a rank: of each layer that has some, its units, the tensors of a unit, and where
 * they lie in a buffer. Shared by load.c, which lists them, and weight_stream.c, which reads them.
 */
#ifndef CAKE_MODEL_STREAM_LAYERS_H
#define CAKE_MODEL_STREAM_LAYERS_H

#include "model/row_reader.h"

/* One expert or another matrix: tensors [first, first + n). */
typedef struct cake_stream_unit {
    int first, n;
    int expert; /* -1: not an expert */
    int chunks; /* parts in which threads read it */
    bool met;   /* rows of the latest wave of many rows wanted it; true before the first one */
} cake_stream_unit;

typedef struct cake_stream_layer {
    int layer;
    cake_stream_unit *unit; /* [n_unit] owned; experts last, ascending */
    int n_unit, n_dense;    /* n_dense: those that are not experts */
    int32_t *of_expert;     /* [n_expert] owned; unit of each expert, -1: it is held */
    int layout;             /* number of the first layer whose tensors lie in a buffer in the same way */
    bool padded;            /* packing does not write every byte of a matrix */
    int64_t bytes, in_files;
    bool drop; /* its files leave the page cache after each reading */
} cake_stream_layer;

typedef struct cake_stream_tensor {
    cake_read_item read;
    int64_t offset; /* in the buffer */
    size_t bytes;   /* packed; 0: it is a later part of a matrix */
    int order;      /* in which they were added */
} cake_stream_tensor;

typedef struct cake_stream_layers {
    cake_stream_tensor *tensor; /* [n_tensor] owned */
    int n_tensor, cap;
    cake_stream_layer *layer; /* [n] owned, in the order of waves */
    int n;
    int *index; /* [n_layer of the model] owned; in `layer`, -1: nothing of it is streamed */
} cake_stream_layers;

/* Adds a tensor of the next layer, or of the one before. bytes: of its packed matrix. */
void cake_stream_layers_add(cake_stream_layers *all, const cake_tensor_item *p, size_t bytes);
/* Sorts what was added into layers and units. */
void cake_stream_layers_build(cake_stream_layers *all, const cake_model *model, const cake_kernels *kernels);
void cake_stream_layers_free(cake_stream_layers *all);

/* Routers need not spread rows evenly: what a wave of many rows wanted is what the next one will want. */
void cake_stream_layer_note_met(cake_stream_layer *layer, const cake_groups *groups);
/* Whether it was nearly all experts, so that the rest is worth reading. */
bool cake_stream_layer_met_all(const cake_stream_layer *layer);

/* Rows of a chunk of a tensor. */
int cake_stream_chunk_rows(const cake_tensor_item *p);

#endif
