/* SPDX-License-Identifier: Apache-2.0
 *
 * All ranks bring their figures together on rank 0: what each did and how far it is from the next. Every
 * function is called by all ranks together.
 */
#ifndef CAKE_REPORT_GATHER_H
#define CAKE_REPORT_GATHER_H

#include "engine/pipeline.h"
#include "link/comm.h"
#include "planner/rank.h"
#include "report/report.h"

/* How long a message takes along each edge of the replica's ring. Before the run, when messages meet nobody
 * else's. */
void cake_gather_links(cake_rank *me);

/* The plans of all replicas [n_replica], owned, on rank 0; NULL on others. */
cake_plan *cake_gather_plans(const cake_comm *world, const cake_rank *me);
void cake_gather_free_plans(cake_plan *plans, int n); /* NULL is fine */

typedef struct cake_gathered {
    int n_replica;
    cake_report_stage *stages; /* [size] owned; on rank 0 */
    double *layer_s;           /* [size, n_layer] owned; on rank 0: seconds of each rank in each layer */
    cake_plan *plans;          /* [n_replica] owned; on rank 0 */
} cake_gathered;

/* root: NULL on ranks that are none. */
void cake_gather_stats(const cake_comm *world, cake_rank *me, const cake_pipeline *pipeline,
                       const cake_engine *root, cake_gathered *out);
void cake_gather_free(cake_gathered *gathered); /* zeros are fine */

#endif
