/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a cost model, a plan, lengths. Out: seconds, in all and of each layer.
 */
#include "bench/predict.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "planner/simulate.h"

typedef struct rates {
    const cost_model *cost;
    const cake_plan *plan;
    cost_wave rows; /* of the wave in flight */
    prediction *out;
} rates;

static void depart(void *self, const cake_batch *batch, const int *request)
{
    rates *r = self;
    (void)request;
    r->rows = cost_count(r->cost->config, batch->rows, batch->n_row);
}

static double visit(void *self, int i)
{
    rates *r = self;
    const cake_hop *hop = &r->plan->hop[i];
    double all = 0;
    for (int layer = hop->first; layer < hop->first + hop->count; layer++) {
        double seconds = cost_layer(r->cost, layer, &r->rows);
        r->out->layer[layer] += seconds;
        all += seconds;
    }
    return all;
}

static double finish(void *self, const cake_batch *batch)
{
    rates *r = self;
    double seconds = cost_head(r->cost, batch->n_score);
    r->out->head += seconds;
    return seconds;
}

prediction predict(const cost_model *cost, const cake_plan *plan, const cake_schedule_shape *shape,
                   const cost_load *load)
{
    prediction p = {.layer = cake_alloc((size_t)cost->config->n_layer, sizeof *p.layer)};
    cake_sim_request *requests = cake_alloc((size_t)load->seqs, sizeof *requests);
    for (int i = 0; i < load->seqs; i++)
        requests[i] =
            (cake_sim_request){.n_prompt = cost_load_prompt(load, i), .n_generated = load->generated};
    rates r = {.cost = cost, .plan = plan, .out = &p};
    cake_simulation simulation = {.plan = plan,
                                  .shape = shape,
                                  .n = load->seqs,
                                  .request = requests,
                                  .self = &r,
                                  .wave = depart,
                                  .hop = visit,
                                  .root = finish};
    int64_t waves;
    p.seconds = cake_simulate(&simulation, NULL, &waves);
    free(requests);
    return p;
}

void predict_free(prediction *p)
{
    free(p->layer);
}

double predict_ideal(const double *layer, int n_layer, double head, int n_rank)
{
    cake_plan best;
    cake_partition_input cut = {.n_rank = n_rank, .n_layer = n_layer, .layer = layer, .root = head};
    cake_plan_partition(&cut, &best);
    double seconds = cake_plan_cost(&best, &cut);
    cake_plan_free(&best);
    return seconds;
}
