/* SPDX-License-Identifier: Apache-2.0
 *
 * The output of `plan`, as text or as JSON.
 */
#ifndef CAKE_RUN_PLAN_OUTPUT_H
#define CAKE_RUN_PLAN_OUTPUT_H

#include "link/comm.h"
#include "planner/estimate.h"
#include "planner/rank.h"
#include "types/shard.h"

/* Statistics of the input. */
typedef struct cake_counted {
    int64_t requests, failed, too_long, outgrow;
    int64_t n;                            /* prompts with tokens */
    int64_t min, median, p99, max, total; /* tokens of these n prompts */
    int64_t shared;                       /* tokens in prefixes shared with other prompts */
    cake_shard shard;
} cake_counted;

typedef struct cake_plan_output {
    const cake_comm *world;
    const cake_rank *rank;
    const cake_plan *plans;         /* [rank->planning.n_replica] */
    const cake_report_stage *ranks; /* [world->size] */
    const cake_counted *counted;    /* NULL: no input; estimates are for typical lengths */
    const cake_workload *workload;
    const cake_replica_estimate *replicas; /* [rank->planning.n_replica] with the longest answers */
    const double *busy; /* [world->size] seconds of work of each rank in the simulation of replicas */
    cake_estimate shortest, longest; /* with answers of minimum and of maximum length */
} cake_plan_output;

/* Append to out. */
void cake_plan_output_text(const cake_plan_output *summary, cake_buf *out);
void cake_plan_output_json(const cake_plan_output *summary, cake_buf *out);

#endif
