/* SPDX-License-Identifier: Apache-2.0
 *
 * What `plan` says, as text or as JSON.
 */
#ifndef CAKE_RUN_PLAN_OUTPUT_H
#define CAKE_RUN_PLAN_OUTPUT_H

#include "link/comm.h"
#include "planner/estimate.h"
#include "planner/rank.h"
#include "types/shard.h"

/* What the input holds. */
typedef struct cake_counted {
    int64_t requests, failed, too_long, outgrow;
    int64_t n;                               /* prompts that have tokens */
    int64_t least, median, p99, most, total; /* tokens of these n prompts */
    int64_t shared;                          /* tokens that other prompts begin with, too */
    cake_shard shard;
} cake_counted;

typedef struct cake_plan_output {
    const cake_comm *world;
    const cake_rank *rank;
    const cake_plan *plans;         /* [stage->planning.n_replica] */
    const cake_report_stage *ranks; /* [world->size] */
    const cake_counted *counted;    /* NULL: there is no input, and the estimates are of usual lengths */
    const cake_workload *workload;
    const cake_replica_estimate *looks; /* [stage->planning.n_replica] with answers as long as they may be */
    const double *busy; /* [world->size] seconds of work of each rank in what looks looked at */
    cake_estimate least, most;
} cake_plan_output;

/* Appended. */
void cake_plan_output_text(const cake_plan_output *summary, cake_buf *out);
void cake_plan_output_json(const cake_plan_output *summary, cake_buf *out);

#endif
