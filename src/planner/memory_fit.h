/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the plan fits into one memory of a rank, and how large the cache in it may be. Pure.
 */
#ifndef CAKE_PLANNER_MEMORY_FIT_H
#define CAKE_PLANNER_MEMORY_FIT_H

#include "planner/memory_plan.h"
#include "planner/rank.h"

/* Ranks whose memory is too small for the model, and the parts of the message about them. */
typedef struct cake_memory_lack {
    const char *at;         /* "FILE:3:1: ", the beginning; or "" */
    const char *needs;      /* who needs how much, and how much there is */
    const char *where;      /* the end; or "" */
    const char *layers_of;  /* whose layers a topology file sets; NULL: the planner chose all layers */
    const char *option;     /* the option that sets the number of ranks */
    int64_t bytes;          /* missing */
    int64_t each, overhead; /* of a rank: its share of memory, and of that for other things than weights */
    int n_rank, n_sharing;  /* ranks in all, and those that share a memory */
    int n_local;            /* ranks to start on each host; 0: the message does not count hosts */
    int n_pipeline;         /* replicas that the user asked for */
} cake_memory_lack;

/* The topology file's limit for weights and cache of this rank: of its GPU's memory, if it has one. */
int64_t cake_memory_fit_limit(const cake_rank *rank, const cake_memory_use *use);
/* What this rank takes of the memory of these kernels, without a cache, as if no other rank shared it. */
cake_memory_use cake_memory_fit_measure(const cake_rank *rank, const cake_kernels *kernels);
/* Bytes of the cache; negative: the limit does not hold the weights. use: complete but for the cache. */
int64_t cake_memory_fit_cache(const cake_rank *rank, const cake_memory_use *use);
/* Divides a requested cache between a rank's memories all [n] by their layers. */
void cake_memory_fit_divide(const cake_rank *rank, cake_memory_use *all, int n);
/* Bytes of one page of each group. */
int64_t cake_memory_fit_page_bytes(const cake_planning *planning, const cake_memory_use *use);
/* Fails if a memory is too small, before anything is loaded. all_kv: bytes of pages and states of all ranks
 * that share the memory; reports: this rank logs for all that lack memory. */
cake_err cake_memory_fit_check(const cake_comm *world, const cake_rank *rank, const cake_memory_use *use,
                               int64_t all_kv, bool reports);
/* Fails with the message: what is missing, and how many such ranks would do or what else helps. */
cake_err cake_memory_fit_too_large(const cake_planning *planning, const cake_memory_lack *lack);

#endif
