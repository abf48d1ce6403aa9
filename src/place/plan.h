/* SPDX-License-Identifier: Apache-2.0
 *
 * Who owns what. Pure: numbers in, a plan out; no I/O, no MPI, no clock.
 */
#ifndef CAKE_PLACE_PLAN_H
#define CAKE_PLACE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* Layers [first, first + count) on a rank. A wave visits the hops in the order of the plan. */
typedef struct cake_hop {
    int rank, first, count;
} cake_hop;

typedef struct cake_plan {
    cake_hop *hop; /* owned */
    int n_hop, n_rank;
    int first;     /* rank 0 of the plan as the world counts: of several replicas each has its own */
    int64_t steps; /* ends of slices that were tried to find it */
} cake_plan;

/* Memory that ranks which follow one another have together: those of one host, or one alone. */
typedef struct cake_host_memory {
    int n_rank;
    int64_t bytes; /* for layers; negative: even without any it is too little */
} cake_host_memory;

/* What is to be cut into slices, 1 <= n_rank <= n_layer. Costs are in one unit; they and speeds are above 0,
 * but root. */
typedef struct cake_partition_input {
    int n_rank, n_layer;
    const double *layer; /* [n_layer] what each costs */
    double root; /* what rank 0 (the first stage) does beside its layers: embedding, LM head, sampling */
    const double *speed;  /* [n_rank] what each rank does in a unit of time; NULL: all the same */
    const int64_t *bytes; /* [n_layer] what each takes of memory, with its part of the KV cache; see n_pool */
    /* [n_pool] of all ranks in their order, less what they hold beside layers: embedding, head, buffers. */
    const cake_host_memory *pool;
    int n_pool; /* 0: there is memory enough, and bytes may be NULL */
} cake_partition_input;

/* Cuts so that everything fits and the slowest stage takes the least time that is possible then. Every rank
 * has a layer at least, but rank 0 none where that is better. False: nothing fits, and there is no plan. By
 * dynamic programming: at most n_rank * n_layer^2 steps, as many more for each length that a pool of several
 * ranks limits its layers to. */
bool cake_plan_make(const cake_partition_input *cut, cake_plan *plan);
/* The least number of bytes that, if every pool had so many more, would let something fit; 0: it does. And
 * the plan that would be made then. */
int64_t cake_plan_deficit(const cake_partition_input *cut, cake_plan *plan);
/* The same slices, of ranks that begin at `first`. */
cake_plan cake_plan_copy(const cake_plan *plan, int first);
void cake_plan_free(cake_plan *plan);
/* The ranks at both ends of edge e, 0 to n_hop: the root's rank 0 stands before hop 0 and behind the last. */
int cake_plan_from(const cake_plan *plan, int e);
int cake_plan_to(const cake_plan *plan, int e);
/* What the slowest stage takes. */
double cake_plan_cost(const cake_plan *plan, const cake_partition_input *cut);

/* How many sequences and rows the waves of a replica hold. What was not asked for is 0 before the call. */
typedef struct cake_batch_size {
    int max_seqs, chunk;  /* asked for, or 0 */
    int most_seqs;        /* of a lane, where nothing was asked for: what memory allows, or 0 */
    int n_stage, n_vocab; /* ranks: those with layers, and rank 0 */
    bool gpus;            /* some of them are on GPUs, with memory for large waves */
    double dearest;       /* row at the end of the context, over one at its beginning; 0: all cost the same */
    int n_lane, lane_seqs; /* out: waves under way, sequences of each */
    int max_tok;           /* out: rows of the largest wave */
} cake_batch_size;

void cake_batch_size_decide(cake_batch_size *load);

/* Pages for each of n KV cache groups in `memory` bytes of a rank: as many of each, but of none more than
 * `most` [n], what all sequences at their longest can use. page_bytes [n]: of one page on this rank; 0: it
 * has no layers of that group. Returns how many that is for a group without bounds; 0: not even one. */
int cake_plan_pages(int n, const int64_t *page_bytes, const int *most, int64_t memory);

/* Layers of a rank, as the plan counts it, as "0-3,8-11"; "-" if it has none. Appended. */
void cake_plan_layers(const cake_plan *plan, int rank, cake_buf *out);

#endif
