/* SPDX-License-Identifier: Apache-2.0
 *
 * A simulation of the pipeline: the real schedule, stages with a given cost, links that take no time. Pure.
 */
#ifndef CAKE_PLANNER_SIMULATE_H
#define CAKE_PLANNER_SIMULATE_H

#include "placement/plan.h"
#include "schedule/schedule.h"

typedef struct cake_sim_request {
    int n_prompt, n_generated; /* tokens; at least 1 each */
    int score_from;            /* the first token of the prompt that is scored; 0: none */
    int shared;                /* tokens of the prompt in prefix pages of earlier requests; whole pages */
    const int32_t *chain; /* [cake_schedule_chain_len(n_prompt)] prefix nodes, or NULL without prefixes */
} cake_sim_request;

typedef struct cake_simulation {
    const cake_plan *plan;
    const cake_schedule_shape *shape;
    cake_prefix_tree *prefixes; /* that the chains point into; or NULL */
    int n;                      /* requests, in input order */
    const cake_sim_request *request;
    void *self;
    /* Called when a wave leaves; request [slots] maps a slot to its request. Then hop and root return the
     * wave's seconds in the plan's hop i, and on the root when it is back. */
    void (*wave)(void *self, const cake_batch *batch, const int *request);
    double (*hop)(void *self, int i);
    double (*root)(void *self, const cake_batch *batch);
} cake_simulation;

/* Seconds of the whole run. busy [plan->n_rank]: seconds of work of each rank, or NULL; *waves: number of
 * waves. */
double cake_simulate(const cake_simulation *simulation, double *busy, int64_t *waves);

#endif
