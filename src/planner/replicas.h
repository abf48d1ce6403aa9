/* SPDX-License-Identifier: Apache-2.0
 *
 * --replicas: pipelines side by side, each with the whole model. World = n_replica parts of equal size, one
 * after the other; the first rank of each is its root.
 */
#ifndef CAKE_PLANNER_REPLICAS_H
#define CAKE_PLANNER_REPLICAS_H

#include "link/comm.h"

/* Whether the ranks make n of them, with a layer for every rank. The same on all ranks; rank 0 says what
 * would work if not, other numbers of replicas if propose. */
cake_err cake_replicas_check(const cake_comm *world, int n, int n_layer, bool propose);

#endif
