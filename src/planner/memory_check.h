/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that a plan fits into the memory of all ranks.
 */
#ifndef CAKE_PLANNER_MEMORY_CHECK_H
#define CAKE_PLANNER_MEMORY_CHECK_H

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

/* Decides the waves and the KV pages; fails before loading if the model does not fit. All ranks call. */
cake_err cake_memory_check(const cake_comm *world, cake_rank *rank);
/* Fails with the message: what is missing, and how many such ranks would do or what else helps. */
cake_err cake_memory_check_too_large(const cake_planning *planning, const cake_memory_lack *lack);

#endif
