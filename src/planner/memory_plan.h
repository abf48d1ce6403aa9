/* SPDX-License-Identifier: Apache-2.0
 *
 * How much memory a plan takes, and how many waves and KV pages there is memory for. Pure.
 */
#ifndef CAKE_PLANNER_MEMORY_PLAN_H
#define CAKE_PLANNER_MEMORY_PLAN_H

#include "planner/planning.h"
#include "slice/slice.h"

/* What a rank takes of one memory, its host's or its GPU's, in bytes. */
typedef struct cake_memory_use {
    const cake_kernels *kernels; /* whose memory it is */
    int64_t memory;              /* free bytes; of a GPU this rank's alone */
    int n_rank;                  /* ranks that share it */
    int64_t weights;             /* of this rank */
    int64_t fixed;  /* weights and everything else that does not depend on pages and sequences in flight */
    int64_t host;   /* fixed bytes of all ranks that share the memory */
    int64_t tables; /* page tables of all these ranks, a part of host */
    int64_t cache;  /* what pages and recurrent states may have together */
    int64_t page[CAKE_MAX_KV_GROUPS]; /* one page of each KV cache group */
    int64_t states;                   /* recurrent states of all slots */
} cake_memory_use;

/* A rank of the plan in the memory of these kernels, weights apart: fills fixed, tables, page and states. */
cake_memory_use cake_memplan_measure(const cake_planning *planning, const cake_plan *plan, int rank,
                                     int n_thread, const cake_kernels *kernels);
/* Bytes of the KV cache: as asked for (bytes, or negative: percent of what is left), else all that a GPU has
 * left, or half of what a host has left. */
int64_t cake_memplan_cache_bytes(int64_t asked, int64_t left, bool gpu);
/* A hop's slice, with the planning's waves and pages and this rank's threads. */
cake_slice_shape cake_memplan_slice(const cake_planning *planning, const cake_hop *hop);
/* Positions of a sequence that some rank's `memory` has pages for, and that all ranks of the plan have. */
int cake_memplan_rank_max_positions(const cake_planning *planning, int rank, int64_t memory);
int cake_memplan_max_positions(const cake_planning *planning);
/* Sets lanes, waves and KV cache groups; max_seqs: sequences of a lane at most, 0: no limit. Pages are
 * not counted yet. */
void cake_memplan_batch_limits(cake_planning *planning, int max_seqs);
/* Pages of each group [n_group] that all sequences at their longest can use. */
void cake_memplan_max_pages(const cake_planning *planning, int *max);
/* Bytes of a rank with so many threads in its first memory, without weights, pages and states. */
int64_t cake_memplan_overhead_bytes(const cake_planning *planning, int rank, int n_thread);
/* The same in all memories, without page tables, which count as KV cache. plan: any with the planning's
 * waves. */
int64_t cake_memplan_buffer_bytes(const cake_planning *planning, const cake_plan *plan, int rank,
                                  int n_thread);

#endif
