/* SPDX-License-Identifier: Apache-2.0
 *
 * `plan --ranks N`: plans for ranks that do not exist, on hosts like those that do.
 */
#ifndef CAKE_RUN_WHATIF_H
#define CAKE_RUN_WHATIF_H

#include "engine/stats.h"
#include "planner/rank.h"

/* The world that was planned, on rank 0. */
typedef struct cake_whatif {
    cake_comm world;
    cake_plan *plans;         /* [planning.n_replica] owned */
    cake_report_stage *ranks; /* [world.size] owned */
} cake_whatif;

/* On rank 0, the open `me` becomes one of n ranks: the existing ones, then copies of them on further hosts of
 * the same kinds; with replicas, pages and waves. n_request: expected; 0: unknown. Fails with a message if
 * nothing fits. All ranks call. */
cake_err cake_whatif_open(int n, int64_t n_request, const cake_comm *world, cake_rank *me, cake_whatif *out);
void cake_whatif_close(cake_whatif *whatif, const cake_rank *me); /* zeros are fine */

#endif
