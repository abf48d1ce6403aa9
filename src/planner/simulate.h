/* SPDX-License-Identifier: Apache-2.0
 *
 * What a pipeline should take: the real schedule, stages that are numbers, links that take no time. Pure.
 */
#ifndef CAKE_PLANNER_SIMULATE_H
#define CAKE_PLANNER_SIMULATE_H

#include "place/plan.h"
#include "schedule/schedule.h"

typedef struct cake_sim_request {
    int n_prompt, n_generated; /* tokens; at least 1 each */
    int flags;                 /* CAKE_SEQ_SCORED */
    int shared;                /* of the prompt, in whole pages, what others before begin with */
    const int32_t *chain; /* [cake_schedule_chain(n_prompt)] nodes of its prompt, or NULL without prefixes */
} cake_sim_request;

typedef struct cake_simulation {
    const cake_plan *plan;
    const cake_schedule_shape *shape;
    cake_prefix_tree *prefixes; /* that chains are of; or NULL */
    int n;                      /* requests, in their order */
    const cake_sim_request *request;
    void *self;
    /* A wave leaves, request [slots] says which one a sequence is; then seconds of it in the plan's hop i,
     * and at the root when it is back. */
    void (*wave)(void *self, const cake_batch *batch, const int *request);
    double (*hop)(void *self, int i);
    double (*root)(void *self, const cake_batch *batch);
} cake_simulation;

/* Seconds of the whole run. busy [plan->n_rank]: of each rank, or NULL; *waves: how many left. */
double cake_simulate(const cake_simulation *simulation, double *busy, int64_t *waves);

#endif
