/* SPDX-License-Identifier: Apache-2.0
 *
 * Gathers the statistics of all ranks on rank 0. All functions are collective.
 */
#ifndef CAKE_REPORT_GATHER_H
#define CAKE_REPORT_GATHER_H

#include "engine/pipeline.h"
#include "link/comm.h"
#include "planner/rank.h"
#include "report/report.h"

/* Measures the round trip along each edge of the replica. Call before the run, while the network is idle. */
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

/* root: the engine, NULL on ranks without one. */
void cake_gather_stats(const cake_comm *world, cake_rank *me, const cake_pipeline *pipeline,
                       const cake_engine *root, cake_gathered *out);
void cake_gather_free(cake_gathered *gathered); /* zeros are fine */

#endif
