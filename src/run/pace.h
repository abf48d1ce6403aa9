/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast ranks are, and what follows for slices and waves. Answers never depend on it.
 */
#ifndef CAKE_RUN_PACE_H
#define CAKE_RUN_PACE_H

#include "link/world.h"
#include "run/options.h"
#include "run/stage.h"

/* All ranks together, when threads and kernels are chosen and nothing else of theirs runs: the rates of all, from
 * --rates or measured, unless nothing would follow from them. Fills the stage's rate, speed and balance, and the peaks of its report. */
cake_err cake_pace_open(const cake_options *options, const cake_world *world, cake_stage *stage);
void cake_pace_close(cake_stage *stage);

/* Cuts the layers by what they cost and by how fast ranks are. The same on every rank. */
void cake_pace_cut(const cake_world *world, cake_stage *stage);

/* The least number of equal ranks of which none has more weights than so many bytes; 0: not even one a layer is enough. */
int cake_pace_least(const cake_stage *stage, int64_t bytes);

/* What rows cost: of all layers together, and the scores of one, at the speeds of the ranks that compute them. */
cake_cost cake_pace_layers(const cake_stage *stage);
double cake_pace_scores(const cake_stage *stage);

#endif
