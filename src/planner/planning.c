/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the rates of all ranks, the model's shape. Out: cost and bytes of layers, speeds of ranks.
 * Invariant: costs are operations counted from the model's shape. Only two things are measured: how many
 * operations take as long as reading one byte, and how many operations a second each rank does.
 */
#include "planner/planning.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "planner/offload.h"

/* Prompts and answers are not known yet. Assumed: prompts are three times as long as answers, and the average
 * position is this. */
#define SCORED   0.25 /* of all rows */
#define POSITION 512

static double mean_row_cost(const cake_cost *cost)
{
    return (1 - SCORED) * cake_cost_row(cost, POSITION, true) + SCORED * cake_cost_row(cost, POSITION, false);
}

void cake_planning_normalize(cake_cluster *cluster, cake_plan_input *input, int n_rank)
{
    bool large = cake_model_parameters(input->model) >= CAKE_MODEL_LARGE; /* a small model stays in caches */
    double measured = large ? cake_rates_balance(n_rank, cluster->rate) : 0, fastest = 0;
    int n_layer = cake_model_config(input->model)->n_layer;
    cluster->balance = measured > 0 ? measured : CAKE_COST_BALANCE;
    input->cost = cake_cost_of_layers(input->model, cake_offload_first(input), 0, n_layer, input->kv_dtype);
    input->cost.balance = cluster->balance;
    cluster->speed = cake_alloc((size_t)n_rank, sizeof *cluster->speed);
    for (int i = 0; i < n_rank; i++) {
        const cake_rate *rate = &cluster->rate[i];
        cake_cost all = input->cost;
        all.balance = large && rate->flops > 0 ? cake_rates_balance(1, rate) : cluster->balance;
        cluster->speed[i] = rate->flops > 0 ? rate->flops / mean_row_cost(&all) : 1;
        fastest = cluster->speed[i] > fastest ? cluster->speed[i] : fastest;
    }
    for (int i = 0; i < n_rank; i++)
        cluster->speed[i] /= fastest;
}

void cake_planning_set_layers(const cake_cluster *cluster, cake_plan_input *input)
{
    const cake_config *config = cake_model_config(input->model);
    const cake_kernels *kernels = cake_offload_first(input);
    cake_range behind = {config->n_layer, config->mtp};
    cake_weight_set ends = {.range = &behind, .n_range = 1, .embed = true, .head = true};
    cake_layers *layers = &input->layers;
    layers->cost = cake_alloc((size_t)config->n_layer, sizeof *layers->cost);
    layers->bytes = cake_alloc((size_t)config->n_layer, sizeof *layers->bytes);
    layers->ends = (int64_t)cake_model_bytes(input->model, &ends, kernels);
    layers->root =
        (double)config->dim * 2 * sizeof(float) * cluster->balance + SCORED * cake_cost_scores(config);
    for (int i = 0; i < config->n_layer; i++) {
        cake_range one = {i, 1};
        cake_weight_set set = {.range = &one, .n_range = 1};
        cake_cost cost = cake_cost_of_layers(input->model, kernels, i, 1, input->kv_dtype);
        cost.balance = cluster->balance;
        layers->cost[i] = mean_row_cost(&cost);
        layers->bytes[i] = (int64_t)cake_model_bytes(input->model, &set, kernels);
    }
}

double cake_planning_held_fraction(const cake_plan_input *input, int n_rank)
{
    double all = (double)input->layers.ends;
    for (int i = 0; i < cake_model_config(input->model)->n_layer; i++)
        all += (double)input->layers.bytes[i];
    double held = input->weights_memory < 0 ? -0.01 * (double)input->weights_memory
                                            : (double)input->weights_memory * n_rank / all;
    return !input->weights_memory || held > 1 ? 1 : held;
}

double cake_planning_scores_cost(const cake_planning *p)
{
    const double *speed = p->cluster->speed + p->plan.first;
    double layers = 0, seconds = 0;
    for (int i = 0; i < p->plan.n_hop; i++) {
        layers += p->plan.hop[i].count;
        seconds += p->plan.hop[i].count / speed[p->plan.hop[i].rank];
    }
    return cake_cost_scores(cake_model_config(p->input->model)) * layers / seconds / speed[0];
}

void cake_cluster_free(cake_cluster *cluster)
{
    free(cluster->resources);
    free(cluster->rate);
    free(cluster->speed);
    *cluster = (cake_cluster){0};
}

void cake_plan_input_free(cake_plan_input *input)
{
    free(input->layers.cost);
    free(input->layers.bytes);
    *input = (cake_plan_input){0};
}
