/* SPDX-License-Identifier: Apache-2.0
 *
 * How many replicas of how many stages, where nobody says so: the fewest stages that fit, unless others would
 * end sooner. Results never depend on it. Pure, but for the message.
 */
#ifndef CAKE_PLANNER_PARALLELISM_H
#define CAKE_PLANNER_PARALLELISM_H

#include "base/buf.h"
#include "planner/planning.h"

/* The number of replicas for n_rank ranks of the cluster and so many requests (0: unknown). Logs why. */
int cake_parallelism_decide(const cake_planning *planning, int n_rank, int64_t requests);
/* The same, silently; requests have usual lengths (0: many of them). Appends to why what was compared, with
 * times in seconds or relative to the first one that fits. */
int cake_parallelism_best(const cake_planning *planning, int n_rank, int64_t requests, bool in_seconds,
                          cake_buf *why);

#endif
