/* SPDX-License-Identifier: Apache-2.0
 *
 * Iterates over the tensors of a weight set, always in the same order: model.c checks and counts with it,
 * load.c reads with it.
 */
#ifndef CAKE_MODEL_TENSOR_WALK_H
#define CAKE_MODEL_TENSOR_WALK_H

#include "base/arena.h"
#include "model/bundle.h"
#include "model/model.h"
#include "model/quantized.h"
#include "model/tensor_index.h"
#include "model/tensor_spec.h"

#define CAKE_MAX_LOAD 2 /* host and device memory */

struct cake_model {
    cake_config config;
    cake_model_options options;
    char *dir;
    cake_tensor_index *store; /* NULL: dummy weights */
    cake_bundle *bundle;      /* NULL: the directory holds the whole model */
    const cake_name_prefix *name_prefix;
    cake_dtype dtype, embed_dtype;
    bool keeps[CAKE_N_INPUT];
    cake_weight_form stored[CAKE_MAX_FORM]; /* [n_stored] */
    int n_stored;
    int64_t parameters, bytes_read;
    uint32_t identity;
    int *used; /* [n_used] indices in the store of the model's tensors, in alphabetical order */
    int n_used;

    struct cake_taken { /* memory allocated by each load */
        const cake_memory *memory;
        cake_arena arena;
    } held[CAKE_MAX_LOAD];
    int n_held;
    struct cake_weight_stream *stream; /* owned; NULL: all weights are held */
    cake_layer_weights *layer;         /* [n_layer + 1] */
    cake_ends ends;
};

/* One tensor of a weight set. */
typedef struct cake_tensor_item {
    const cake_tensor_spec *spec;
    int layer;
    int expert;       /* or head; 0 unless there is a matrix for each */
    const char *name; /* borrowed during the visit */
    int n_out, n_in;
    int stack;                       /* matrices that the tensor consists of: [stack, all, n_in] */
    int deep;                        /* transposed: [stack, deep, all] */
    int all, before;                 /* rows of each; first row of this item, in all of them */
    int run, stride;                 /* contiguous rows, and rows from one run to the next */
    int whole, at;                   /* rows of the matrix in memory, and its first row of this item */
    const cake_indexed_tensor *from; /* NULL: dummy, or not in the files */
    bool interleaved;                /* the rows of a run stand in the order of cake_tensor_spec */
    cake_dtype dtype;                /* in the file; of quantised rows F32 */
    cake_dtype kept;                 /* of a matrix: in memory */
    const cake_format *format;       /* of rows, if they are quantised; else NULL */
    bool as_stored;                  /* the matrix is kept in this format */
    const cake_format *kept_format;  /* in which it is kept; NULL: as elements of `kept` */
    cake_quantized quantized;        /* without a format: the rows lie in the file as they are */
} cake_tensor_item;

typedef cake_err (*cake_tensor_walk_fn)(const cake_model *model, const cake_tensor_item *p, void *arg);

/* Calls fn for every tensor of the weight set until one fails. */
cake_err cake_tensor_walk_visit(const cake_model *model, const cake_weight_set *share, cake_tensor_walk_fn fn,
                                void *arg);
/* Bytes of its rows, as they are read; and of one. */
int64_t cake_tensor_item_bytes(const cake_tensor_item *p);
size_t cake_tensor_item_row(const cake_tensor_item *p);
/* The matrix without its data. */
cake_weight cake_tensor_item_weight(const cake_tensor_item *p);
/* The tensors that it is read from, with their files [CAKE_N_QUANT]; returns their number. */
int cake_tensor_item_parts(const cake_tensor_item *p, const cake_indexed_tensor **part);
/* Bytes that it needs in the arena; 0 if it is a later part of a matrix, which the first part counts. */
size_t cake_tensor_walk_bytes(const cake_tensor_item *p, const cake_kernels *kernels);

/* The tensor by its name after `prefix`, and the head; NULL: absent. */
const cake_indexed_tensor *cake_tensor_walk_find(const cake_model *model, const char *prefix,
                                                 const char *name);
const cake_indexed_tensor *cake_tensor_walk_find_head(const cake_model *model);

#endif
