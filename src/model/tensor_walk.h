/* SPDX-License-Identifier: Apache-2.0
 *
 * The walk over the tensors that a share holds: model.c checks and counts by it, load.c reads by it. In: a
 * model and a share. Out: one piece a tensor, always in the same order.
 */
#ifndef CAKE_MODEL_TENSOR_WALK_H
#define CAKE_MODEL_TENSOR_WALK_H

#include "base/arena.h"
#include "model/bundle.h"
#include "model/model.h"
#include "model/tensor_index.h"
#include "model/tensor_spec.h"

#define CAKE_MAX_LOAD 2 /* the host's memory, and another one */

struct cake_model {
    cake_config config;
    cake_model_options options;
    char *dir;
    cake_tensor_index *store; /* NULL: dummy weights */
    cake_bundle *bundle;      /* NULL: the directory has the whole model */
    const cake_name_prefix *naming;
    cake_dtype dtype, embed_dtype;
    bool keeps[CAKE_N_KEPT];
    int64_t parameters, bytes_read;
    uint32_t identity;
    int *used; /* [n_used] which of the store's tensors the model has, in the order of names */
    int n_used;

    struct cake_taken { /* what each load took, and of which memory */
        const cake_memory *memory;
        cake_arena arena;
    } held[CAKE_MAX_LOAD];
    int n_held;
    cake_layer_weights *layer; /* [n_layer] */
    cake_ends ends;
};

/* One tensor that a share holds. */
typedef struct cake_tensor_item {
    const cake_tensor_spec *part;
    int layer;
    const char *name; /* borrowed, for as long as the visit lasts */
    int n_out, n_in;
    int all, before;                 /* rows of the tensor, and which is the first of these */
    int run;                         /* rows that stand together; others of equal number follow */
    const cake_indexed_tensor *from; /* NULL: dummy, or not in the files */
    cake_dtype dtype;                /* there */
    cake_dtype kept;                 /* of a matrix: in memory */
} cake_tensor_item;

typedef cake_err (*cake_tensor_walk_fn)(const cake_model *model, const cake_tensor_item *p, void *arg);

/* Calls fn for every tensor of the share until one fails. */
cake_err cake_tensor_walk_visit(const cake_model *model, const cake_weight_set *share, cake_tensor_walk_fn fn,
                                void *arg);
/* Bytes that it takes of the arena. */
size_t cake_tensor_walk_bytes(const cake_tensor_item *p, const cake_kernels *kernels);

/* The tensor by its name behind `prefix`, and that of the head; NULL: there is none. */
const cake_indexed_tensor *cake_tensor_walk_find(const cake_model *model, const char *prefix,
                                                 const char *name);
const cake_indexed_tensor *cake_tensor_walk_find_head(const cake_model *model);

#endif
