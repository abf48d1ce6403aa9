/* SPDX-License-Identifier: Apache-2.0
 *
 * How many replicas of how many stages, without --replicas: the fewest stages that fit, unless another shape
 * would finish sooner. Results never depend on it. Pure, but for messages.
 *
 * A replica is a copy of the pipeline with the whole model (data parallelism). The world is divided into
 * parts of equal size, in rank order; the first rank of each is its root.
 */
#ifndef CAKE_PLANNER_PARALLELISM_H
#define CAKE_PLANNER_PARALLELISM_H

#include "base/buf.h"
#include "planner/planning.h"

/* The number of replicas for n_rank ranks of the cluster and so many requests (0: unknown). Logs why. */
int cake_parallelism_decide(const cake_planning *planning, int n_rank, int64_t requests);
/* The same without logging, for requests of typical length (0: many). Appends to why what was compared, with
 * times in seconds or relative to the first shape that fits. */
int cake_parallelism_best(const cake_planning *planning, int n_rank, int64_t requests, bool in_seconds,
                          cake_buf *why);

/* --replicas: checks that n_rank ranks divide into n replicas with a layer for every rank. reports: logs what
 * would work; propose: also other numbers of replicas. */
cake_err cake_parallelism_check(int n_rank, int n, int n_layer, bool reports, const char *how, bool propose);

#endif
