/* SPDX-License-Identifier: Apache-2.0
 *
 * The walk over the tensors that a share holds: model.c checks and counts by it, load.c reads by it. In: a
 * model and a share. Out: one piece a tensor, always in the same order.
 */
#ifndef CAKE_MODEL_PIECE_H
#define CAKE_MODEL_PIECE_H

#include "base/arena.h"
#include "model/bundle.h"
#include "model/model.h"
#include "model/part.h"
#include "model/store.h"

#define CAKE_MAX_LOAD 2 /* the host's memory, and another one */

struct cake_model {
    cake_config config;
    cake_model_options options;
    char *dir;
    cake_store *store;   /* NULL: dummy weights */
    cake_bundle *bundle; /* NULL: the directory has the whole model */
    const cake_naming *naming;
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
typedef struct cake_piece {
    const cake_part *part;
    int layer;
    const char *name; /* borrowed, for as long as the visit lasts */
    int n_out, n_in;
    int all, before;         /* rows of the tensor, and which is the first of these */
    int run;                 /* rows that stand together; others of equal number follow */
    const cake_stored *from; /* NULL: dummy, or not in the files */
    cake_dtype dtype;        /* there */
    cake_dtype kept;         /* of a matrix: in memory */
} cake_piece;

typedef cake_err (*cake_piece_fn)(const cake_model *model, const cake_piece *p, void *arg);

/* Calls fn for every tensor of the share until one fails. */
cake_err cake_piece_visit(const cake_model *model, const cake_share *share, cake_piece_fn fn, void *arg);
/* Bytes that it takes of the arena. */
size_t cake_piece_bytes(const cake_piece *p, const cake_kernels *kernels);

/* The tensor by its name behind `prefix`, and that of the head; NULL: there is none. */
const cake_stored *cake_piece_find(const cake_model *model, const char *prefix, const char *name);
const cake_stored *cake_piece_find_head(const cake_model *model);

#endif
