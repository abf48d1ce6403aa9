/* SPDX-License-Identifier: Apache-2.0
 *
 * S stages x R replicas, where nobody says how many: the fewest stages that fit and the rest as replicas,
 * unless others would be done sooner. Results never depend on it.
 */
#ifndef CAKE_PLANNER_PARALLELISM_H
#define CAKE_PLANNER_PARALLELISM_H

#include "options/options.h"
#include "planner/stage.h"

/* Whether it is left to us: nothing was said, no topology file is read, and the model is so large that rates
 * of ranks are measured. The same on all ranks. */
bool cake_parallelism_is_open(const cake_options *options, int n_rank, const cake_model *model);

/* All ranks together, when rates, resources and layers are known: how many replicas, which rank 0 decides and
 * says why. */
int cake_parallelism_choose(const cake_options *options, const cake_comm *world, const cake_stage *stage);

/* On rank 0: the same, for so many ranks that the stage knows of. */
int cake_parallelism_decide(const cake_options *options, const cake_stage *stage, int n_rank);
/* Pure: the same for so many ranks and requests of usual lengths (0: many). What was compared is appended to
 * why, times in seconds or as shares of the first one that fits. */
int cake_parallelism_best(const cake_options *options, const cake_stage *stage, int n_rank, int64_t requests,
                          bool in_seconds, cake_buf *why);

#endif
