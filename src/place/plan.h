/* SPDX-License-Identifier: Apache-2.0
 *
 * Who owns what. Pure: numbers in, a plan out; no I/O, no MPI, no clock.
 */
#ifndef CAKE_PLACE_PLAN_H
#define CAKE_PLACE_PLAN_H

#include <stdint.h>

/* Layers [first, first + count) on a rank. A wave visits the hops in the order of the plan. */
typedef struct cake_hop {
    int rank, first, count;
} cake_hop;

typedef struct cake_plan {
    cake_hop *hop; /* owned */
    int n_hop;
} cake_plan;

/* Cuts n_layer layers into n_rank slices (1 <= n_rank <= n_layer) so that the slowest stage is as fast as can
 * be: a layer costs layer_cost everywhere, rank 0 (the first stage) has root_cost (LM head, sampling) on top. */
void cake_plan_make(int n_rank, int n_layer, double layer_cost, double root_cost, cake_plan *plan);
void cake_plan_free(cake_plan *plan);

/* What is to be decided about the KV cache and the waves, and what decides it. */
typedef struct cake_room {
    /* in: what the user asked for, 0 where nothing was asked */
    int64_t kv_memory; /* bytes of a rank */
    int max_seqs, chunk;
    /* in: the model and the pipeline */
    int n_hop, n_vocab, context;
    int64_t page_bytes; /* of the rank whose pages are largest */
    int64_t memory;     /* bytes the poorest rank has for KV pages and buffers */
    /* out */
    int lane_seqs; /* sequences of a lane; max_seqs = lane_seqs * n_hop */
    int max_tok;   /* rows of the largest wave */
    int n_page;
} cake_room;

/* Fills the out fields; n_page 0 if not even one page fits. */
void cake_room_decide(cake_room *room);

#endif
