/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast ranks are, and what follows for slices and waves. Answers never depend on it.
 */
#ifndef CAKE_PLANNER_PACE_H
#define CAKE_PLANNER_PACE_H

#include "link/comm.h"
#include "options/options.h"
#include "planner/stage.h"

/* All ranks together, when threads and kernels are chosen and nothing else of theirs runs: the rates of all,
 * from --rates or measured, unless nothing would follow from them. Fills the stage's rate, speed, balance and
 * whole, and the peaks of its report. */
cake_err cake_pace_open(const cake_options *options, const cake_comm *world, cake_stage *stage);
/* Pure, part of it: balance, whole and speed, by the rates of n_rank ranks. */
void cake_pace_weigh(cake_stage *stage, int n_rank);
void cake_pace_close(cake_stage *stage);

/* What a row of usual waves costs: in each layer [n_layer] (owned), and of the root's work beside its layers.
 * In operations. */
double *cake_pace_layers(const cake_stage *stage);
double cake_pace_root(const cake_stage *stage);

/* What the scores of a row cost as seen from the layers, at the speeds of the ranks that compute them. */
double cake_pace_scores(const cake_stage *stage);

#endif
