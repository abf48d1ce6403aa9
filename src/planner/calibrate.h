/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast ranks are, and what follows for slices and waves. Answers never depend on it.
 */
#ifndef CAKE_PLANNER_CALIBRATE_H
#define CAKE_PLANNER_CALIBRATE_H

#include "link/comm.h"
#include "options/options.h"
#include "planner/stage.h"

/* All ranks together, when threads and kernels are chosen and nothing else of theirs runs: the rates of all,
 * from --rates or measured, unless nothing would follow from them. Fills the stage's rate, speed, balance and
 * whole, and the peaks of its report. */
cake_err cake_calibrate(const cake_options *options, const cake_comm *world, cake_stage *stage);
/* Pure, part of it: balance, whole and speed, by the rates of n_rank ranks. */
void cake_calibrate_normalize(cake_stage *stage, int n_rank);
void cake_calibration_free(cake_stage *stage);

/* What a row of usual waves costs: in each layer [n_layer] (owned), and of the root's work beside its layers.
 * In operations. */
double *cake_calibrated_layer_costs(const cake_stage *stage);
double cake_calibrated_root_cost(const cake_stage *stage);

/* What the scores of a row cost as seen from the layers, at the speeds of the ranks that compute them. */
double cake_calibrated_scores_cost(const cake_stage *stage);

#endif
