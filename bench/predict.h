/* SPDX-License-Identifier: Apache-2.0
 *
 * Predicts the time of a pipeline: the real schedule, modelled stages, links that take no time. Pure.
 */
#ifndef CAKE_BENCH_PREDICT_H
#define CAKE_BENCH_PREDICT_H

#include "bench/cost.h"
#include "placement/plan.h"
#include "schedule/schedule.h"

typedef struct prediction {
    double seconds;
    double *layer; /* [n_layer] seconds of each layer for all waves; owned */
    double head;   /* seconds of the head for all waves */
} prediction;

prediction predict(const cost_model *cost, const cake_plan *plan, const cake_schedule_shape *shape,
                   const cost_load *load);
void predict_free(prediction *p);

/* Busy seconds of the slowest rank under the best plan for layers of these costs [n_layer]; the first of
 * n_rank ranks has the head, too. No pipeline without split layers is faster. */
double predict_ideal(const double *layer, int n_layer, double head, int n_rank);

#endif
