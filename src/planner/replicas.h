/* SPDX-License-Identifier: Apache-2.0
 *
 * --replicas: copies of the pipeline, each with the whole model (data parallelism). The world is cut into
 * n_replica parts of equal size, in rank order; the first rank of each is its root.
 */
#ifndef CAKE_PLANNER_REPLICAS_H
#define CAKE_PLANNER_REPLICAS_H

#include "link/comm.h"

/* Checks that the ranks divide into n replicas with a layer for every rank. The same result on all ranks;
 * rank 0 logs what would work, and other numbers of replicas if propose. */
cake_err cake_replicas_check(const cake_comm *world, int n, int n_layer, bool propose);

#endif
