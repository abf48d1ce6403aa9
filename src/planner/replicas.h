/* SPDX-License-Identifier: Apache-2.0
 *
 * --replicas: pipelines side by side, each with the whole model. World = n_replica parts of equal size, one
 * after the other; the first rank of each is its root.
 */
#ifndef CAKE_PLANNER_REPLICAS_H
#define CAKE_PLANNER_REPLICAS_H

#include "link/comm.h"
#include "options/options.h"

/* How many the options ask for. */
int cake_replicas_asked(const cake_options *options);
/* Whether the ranks make n of them, with a layer for every rank. The same on all ranks; rank 0 says what
 * would work if not. */
cake_err cake_replicas_check(const cake_options *options, const cake_comm *world, int n, int n_layer);

#endif
