/* SPDX-License-Identifier: Apache-2.0
 *
 * Which weights a rank holds in memory and which it reads for each wave, if it may not hold all
 * (--weights-memory). A unit is an expert of a layer, or another matrix of a layer; it is held or streamed as
 * a whole. Vectors, routers, embedding and head are always held. Streamed units of a layer are read into one
 * of two buffers, each as large as those of the largest layer; where two are too much, into one.
 */
#ifndef CAKE_MODEL_WEIGHT_SPLIT_H
#define CAKE_MODEL_WEIGHT_SPLIT_H

#include "model/tensor_walk.h"

enum { CAKE_STREAM_BUFFERS = 2 }; /* at most */

typedef struct cake_weight_unit {
    int layer;
    int late;         /* units with a lower number are held first */
    int order;        /* among those of its layer with the same `late` */
    int64_t bytes;    /* packed */
    int64_t in_files; /* bytes that a reading takes */
    bool expert, held;
} cake_weight_unit;

typedef struct cake_weight_split {
    cake_weight_unit *unit; /* [n_unit] owned */
    int n_unit;
    int *index; /* owned; [layer, key] of the model: number of the unit, or -1 */
    int n_key;
    int64_t fixed;  /* bytes that are always held */
    int64_t held;   /* bytes of held units */
    int64_t buffer; /* bytes of each buffer; 0: nothing is streamed */
    int n_buffer;
    int64_t all, min_bytes; /* bytes if all is held, and if as little as possible is */
    int64_t limit;          /* share->limit in bytes; 0: none */
    int64_t wave_bytes;     /* that a wave reads which meets all experts */
    int64_t expert_bytes;   /* of these, those of experts */
} cake_weight_split;

typedef struct cake_split_choice {
    int64_t buffer;    /* bytes of each buffer */
    int n_buffer;      /* 0: everything is held; -1: the limit is too small, and nothing is held */
    int64_t min_bytes; /* n_buffer -1: the smallest limit that is enough */
} cake_split_choice;

/* Decides what is held of n units, so that fixed bytes, held units and buffers are at most `limit`: as many
 * as possible in the order of `late`, layer after layer in turn, so that all layers read about as much. */
cake_split_choice cake_weight_split_choose(cake_weight_unit *unit, int n, int64_t fixed, int64_t limit);

/* The split of a weight set in the memory of these kernels, by share->limit. */
void cake_weight_split_make(const cake_model *model, const cake_weight_set *share,
                            const cake_kernels *kernels, cake_weight_split *split);
void cake_weight_split_free(cake_weight_split *split);
/* Bytes of memory that it takes for weights: at most the limit, unless that is less than min_bytes. */
int64_t cake_weight_split_bytes(const cake_weight_split *split);
/* The unit of a tensor; NULL: it has none and is always held. */
const cake_weight_unit *cake_weight_split_find(const cake_weight_split *split, const cake_model *model,
                                               const cake_tensor_item *p);

#endif
