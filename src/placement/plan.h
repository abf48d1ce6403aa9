/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans, and the search that partitions layers into one; wave sizes; page counts. It knows numbers only:
 * planner/partition.c prepares them from model and cluster. Pure: no I/O, no MPI, no clock.
 */
#ifndef CAKE_PLACEMENT_PLAN_H
#define CAKE_PLACEMENT_PLAN_H

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
    int first;     /* world rank of its rank 0: each replica has its own plan */
    int64_t steps; /* candidate ends tried by the search */
} cake_plan;

/* Memory shared by consecutive ranks: those of one host, or a single rank. */
typedef struct cake_host_memory {
    int n_rank;
    int64_t bytes; /* for layers; negative: too little even without any */
} cake_host_memory;

/* Input of the partition, 1 <= n_rank <= n_layer. Costs are in one unit; costs and speeds are above 0, except
 * root. */
typedef struct cake_partition_input {
    int n_rank, n_layer;
    const double *layer;  /* [n_layer] cost of each layer */
    double root;          /* additional cost on rank 0 (the first stage): embedding, LM head, sampling */
    const double *speed;  /* [n_rank] cost units per unit of time; NULL: all equal */
    const int64_t *bytes; /* [n_layer] bytes with its part of the KV cache; see n_pool */
    /* [n_pool] of all ranks in order, minus embedding, head and buffers. */
    const cake_host_memory *pool;
    int n_pool; /* 0: memory is not limited, and bytes may be NULL */
} cake_partition_input;

/* Partitions the layers so that everything fits and the slowest stage is as fast as possible. Every rank gets
 * at least one layer, but rank 0 none where that is better. False: nothing fits. Dynamic programming: at most
 * n_rank * n_layer^2 steps, times the number of different limits of pools with several ranks. */
bool cake_plan_partition(const cake_partition_input *input, cake_plan *plan);
/* The minimum of additional bytes per pool with which a plan exists (0: one fits already), and that plan. */
int64_t cake_plan_deficit(const cake_partition_input *input, cake_plan *plan);
/* Copies a plan for ranks that begin at `first`. */
cake_plan cake_plan_copy(const cake_plan *plan, int first);
void cake_plan_free(cake_plan *plan);
/* The ranks at both ends of edge e, 0 to n_hop: rank 0, with the engine, is before hop 0 and after the
 * last. */
int cake_plan_from(const cake_plan *plan, int e);
int cake_plan_to(const cake_plan *plan, int e);
/* True if a rank is one end, and not both, of edge e. */
bool cake_plan_is_end(const cake_plan *plan, int e, int rank);
/* Time of the slowest stage. */
double cake_plan_cost(const cake_plan *plan, const cake_partition_input *input);

/* Sequences and rows of a replica's waves. Set what is not requested to 0 before the call. */
typedef struct cake_batch_size {
    int max_seqs, chunk;   /* requested, or 0; out: chosen (--chunk) */
    int memory_seqs;       /* maximum per lane that memory allows, if none is requested; or 0 */
    int n_stage, n_vocab;  /* n_stage: ranks with layers, and rank 0 */
    double expert_rows;    /* rows of a wave for each row that an expert meets: experts / chosen ones; or 0 */
    double reading_rows;   /* rows of a wave that compute as long as its weights are read; or 0 */
    bool gpus;             /* some stages are on GPUs with memory for large waves */
    double max_row_cost;   /* cost of a row at the end of the context relative to the beginning; 0: equal */
    int n_lane, lane_seqs; /* out: waves in flight, sequences of each */
    int max_row;           /* out: rows of the largest wave */
} cake_batch_size;

void cake_batch_size_decide(cake_batch_size *load);

/* Pages of n KV cache groups that fit `memory` bytes of a rank: an equal number of each group, but never more
 * than `max` [n], which all sequences at max length can use. page_bytes [n]: of one page on this rank; 0: no
 * layers of the group. Returns the number for an unlimited group; 0: not even one. */
int cake_plan_pages(int n, const int64_t *page_bytes, const int *max, int64_t memory);

/* Appends the layers of a rank (numbered within the plan), as "0-3,8-11"; "-" if it has none. */
void cake_plan_layers(const cake_plan *plan, int rank, cake_buf *out);

#endif
