/* SPDX-License-Identifier: Apache-2.0
 *
 * What a pipeline should take: the real schedule, stages that are numbers, links that take no time. Pure.
 */
#ifndef CAKE_BENCH_PREDICT_H
#define CAKE_BENCH_PREDICT_H

#include "bench/cost.h"
#include "place/plan.h"
#include "schedule/schedule.h"

typedef struct prediction {
    double seconds;
    double *layer; /* [n_layer] seconds that each layer's waves take together; owned */
    double head;   /* seconds that the head takes for all waves together */
} prediction;

prediction predict(const cost_model *cost, const cake_plan *plan, const cake_schedule_shape *shape,
                   const cost_load *load);
void predict_free(prediction *p);

/* Seconds that the slowest rank is busy under the best plan for these sums [n_layer], in n_rank runs of
 * layers, the first of which has the head too: nothing that keeps a layer in one place is faster. */
double predict_ideal(const double *layer, int n_layer, double head, int n_rank);

#endif
