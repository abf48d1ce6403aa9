/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan of ranks that do not exist, on hosts like those of a cluster. Pure, but for messages.
 */
#ifndef CAKE_PLANNER_WHATIF_PLAN_H
#define CAKE_PLANNER_WHATIF_PLAN_H

#include "engine/stats.h"
#include "planner/rank.h"

/* The cluster becomes one of n ranks: the existing ones, then copies of them on further hosts. */
void cake_whatif_plan_repeat(cake_cluster *cluster, int n);
/* Plans all replicas of the cluster's ranks: plans [n_replica], and waves and pages that fit on every rank.
 * from_file: the file's plan, or NULL. Fails with a message if something does not fit. */
cake_err cake_whatif_plan_replicas(cake_rank *rank, cake_plan *from_file, cake_plan *plans);
/* The report that a rank would make. like: the existing rank that it copies; copy: 0 on that one's own host,
 * else the number of the further host like it. */
cake_report_stage cake_whatif_plan_report(const cake_planning *planning, const cake_plan *plan, int rank,
                                          const cake_report_stage *like, int copy);

#endif
