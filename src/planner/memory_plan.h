/* SPDX-License-Identifier: Apache-2.0
 *
 * How much memory a plan takes, and how many waves and KV pages fit into it. Pure.
 */
#ifndef CAKE_PLANNER_MEMORY_PLAN_H
#define CAKE_PLANNER_MEMORY_PLAN_H

#include "planner/planning.h"
#include "slice/slice.h"

/* Bytes that layers keep for sequences. */
typedef struct cake_kv_use {
    int64_t page[CAKE_MAX_KV_GROUPS]; /* one page of each KV cache group */
    int64_t state;                    /* the recurrent states of one slot */
} cake_kv_use;

/* Bytes that a rank takes of one memory, its host's or its GPU's. */
typedef struct cake_memory_use {
    const cake_kernels *kernels; /* the device whose memory it is */
    int64_t memory;              /* free bytes; of a GPU, this rank's share */
    int n_rank;                  /* ranks that share it */
    int64_t weights;             /* of this rank */
    int64_t fixed;     /* weights and everything else that does not depend on pages and sequences in flight */
    int64_t all_fixed; /* fixed bytes of all ranks that share the memory */
    int64_t tables;    /* page tables of all these ranks, included in all_fixed */
    int64_t cache;     /* limit for pages and recurrent states together */
    cake_kv_use kv;
} cake_memory_use;

/* Fills fixed, tables and kv of a rank of the plan in the memory of these kernels, without
 * weights. */
cake_memory_use cake_memory_plan_measure(const cake_planning *planning, const cake_plan *plan, int rank,
                                         int n_thread, const cake_kernels *kernels);
/* Bytes of the KV cache: as requested (bytes, or negative: percent of what is left), else all that a GPU has
 * left, or half of what a host has left. */
int64_t cake_memory_plan_cache_bytes(int64_t requested, int64_t left, bool gpu);
/* Adds the layers of a hop to kv. */
void cake_memory_plan_add_kv(const cake_planning *planning, const cake_hop *hop, cake_kv_use *kv);
/* What the layers of a rank keep; and bytes of its cache: pages of the shape, tables and states. */
cake_kv_use cake_memory_plan_rank_kv(const cake_planning *planning, const cake_plan *plan, int rank);
int64_t cake_memory_plan_rank_cache(const cake_planning *planning, const cake_plan *plan, int rank);
/* Bytes of the recurrent states of all slots; they are allocated, used or not. */
int64_t cake_memory_plan_states(const cake_planning *planning, const cake_kv_use *kv);
/* Sequences of a lane, at most those of the shape, whose states take at most half of a cache; perhaps 0. */
int64_t cake_memory_plan_fit_seqs(const cake_planning *planning, const cake_kv_use *kv, int64_t cache);
/* Pages of a full-attention group that fit into a cache after the states. */
int cake_memory_plan_fit_pages(const cake_planning *planning, const cake_kv_use *kv, int64_t cache);
/* Sets the number of pages of each group; pages: of a full-attention group. */
void cake_memory_plan_set_pages(cake_planning *planning, int64_t pages);
/* Bytes of the states and of all pages of the shape. */
int64_t cake_memory_plan_kv_bytes(const cake_planning *planning, const cake_kv_use *kv);
/* The shape of a hop's slice, with the planning's waves and pages and this rank's threads. */
cake_slice_shape cake_memory_plan_slice(const cake_planning *planning, const cake_hop *hop);
/* Maximum positions of a sequence whose pages fit into a rank's `memory`; and the minimum over all ranks of
 * the plan. */
int cake_memory_plan_rank_max_positions(const cake_planning *planning, int rank, int64_t memory);
int cake_memory_plan_max_positions(const cake_planning *planning);
/* Sets lanes, waves and KV cache groups, but not the number of pages. max_seqs: limit of sequences in a lane,
 * 0: none. */
void cake_memory_plan_batch_limits(cake_planning *planning, int max_seqs);
/* Pages of each group [n_kv_group] that all sequences use at their maximum length. */
void cake_memory_plan_max_pages(const cake_planning *planning, int *max);
/* Bytes of a rank with n_thread threads in its first memory, without weights, pages and states. */
int64_t cake_memory_plan_overhead_bytes(const cake_planning *planning, int rank, int n_thread);
/* The same in all memories, without page tables, which count as KV cache. plan: any plan with the planning's
 * waves. */
int64_t cake_memory_plan_buffer_bytes(const cake_planning *planning, const cake_plan *plan, int rank,
                                      int n_thread);

#endif
