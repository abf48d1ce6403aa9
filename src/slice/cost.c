/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a model's shapes, a wave's rows. Out: operations and bytes. Pure. Invariant: the numbers follow from
 * sizes and positions alone; nothing is measured.
 */
#include "slice/cost.h"

#include <math.h>
#include <stddef.h>

#include "model/tensor_spec.h"

/* The matrices that make what the cache keeps. */
static bool makes_kept(const cake_tensor_spec *spec)
{
    return spec->offset == offsetof(cake_layer_weights, k) ||
           spec->offset == offsetof(cake_layer_weights, v) ||
           spec->offset == offsetof(cake_layer_weights, kv_a) ||
           spec->offset == offsetof(cake_layer_weights, k_rope);
}

/* Operations per row in a layer's matrices; kv: only in those that make what the cache keeps. */
static double flops_of(const cake_config *c, int layer, bool kv)
{
    double flops = 0;
    for (const cake_tensor_spec *spec = cake_tensor_specs; spec->name; spec++)
        if (spec->owner == CAKE_SPEC_LAYER && cake_tensor_spec_matrix(spec) &&
            cake_tensor_spec_present(spec, c, layer) && (!kv || makes_kept(spec)))
            flops += 2.0 * cake_width_of(spec->out, c, layer) * cake_width_of(spec->in, c, layer) *
                     cake_tensor_spec_met(spec, c);
    return flops;
}

static void add_layer(cake_cost *cost, const cake_config *c, const cake_layer_kind *kind, cake_dtype kv_dtype)
{
    if (kind->mixer == CAKE_MIX_DELTA) {
        const cake_deltanet *d = &c->delta;
        cost->row_flops +=
            6.0 * (double)cake_delta_rule_size(d) + 2.0 * d->width * (double)cake_delta_channels(d);
        cost->sequence_bytes += 2.0 * (double)cake_delta_state_size(d) * sizeof(float);
    } else {
        cost->kv[kind->group].position_flops += cake_config_seen_flops(c, kind->group);
        cost->kv[kind->group].position_bytes += (double)cake_config_kept_bytes(c, kind->group, kv_dtype);
    }
}

cake_cost cake_cost_of_layers(const cake_model *model, const cake_kernels *kernels, int first, int count,
                              cake_dtype kv_dtype)
{
    const cake_config *c = cake_model_config(model);
    cake_cost cost = {.balance = CAKE_COST_BALANCE, .n_kv_group = c->n_kv_group, .both_ways = c->both_ways};
    for (int group = 0; group < c->n_kv_group; group++)
        cost.kv[group].window = c->window[group];
    cake_range range = {first, count};
    const cake_weight_set layers = {.range = &range, .n_range = 1};
    double experts = (double)cake_model_expert_bytes(model, &layers, kernels);
    cost.n_expert = experts > 0 ? c->moe.router.n_expert : 0;
    cost.n_chosen = experts > 0 ? c->moe.router.n_chosen : 0;
    cost.expert_bytes = experts > 0 ? experts / cost.n_expert : 0;
    cost.wave_bytes = (double)cake_model_bytes(model, &layers, kernels) - experts;
    for (int i = first; i < first + count; i++) {
        cost.row_flops += flops_of(c, i, false);
        add_layer(&cost, c, &c->layer[i], kv_dtype);
    }
    const cake_layer_kind *last = &c->layer[c->n_layer - 1];
    if (first + count == c->n_layer && last->mixer != CAKE_MIX_DELTA) {
        cost.no_output.group = last->group;
        cost.no_output.row_flops = flops_of(c, c->n_layer - 1, false) - flops_of(c, c->n_layer - 1, true);
        cost.no_output.position_flops = cake_config_seen_flops(c, last->group);
    }
    return cost;
}

double cake_cost_met_experts(const cake_cost *cost, double n_row)
{
    return cost->n_expert && n_row > 0 ? -expm1(n_row * log1p(-(double)cost->n_chosen / cost->n_expert)) : 0;
}

double cake_cost_weight_bytes(const cake_cost *cost, double n_row)
{
    return cost->wave_bytes + cost->expert_bytes * cost->n_expert * cake_cost_met_experts(cost, n_row);
}

/* The first position visible to a row. */
static int first_seen(int window, int pos)
{
    return window && pos >= window ? pos + 1 - window : 0;
}

static double seen_by(const cake_cost *cost, int group, const cake_row *row)
{
    const int window = cost->kv[group].window, end = row->rope_len - 1, ahead = row->pos + window - 1;
    const int last = !cost->both_ways ? row->pos : window && ahead < end ? ahead : end;
    return last + 1 - first_seen(window, row->pos);
}

cake_flops_bytes cake_cost_of_wave(const cake_cost *cost, const cake_kv *kv, const cake_row *rows, int n_row)
{
    cake_flops_bytes work = {n_row * cost->row_flops, cake_cost_weight_bytes(cost, n_row)};
    for (int first = 0, next; first < n_row; first = next) {
        next = first + 1;
        while (next < n_row && rows[next].slot == rows[first].slot)
            next++;
        work.bytes += cost->sequence_bytes;
        for (int group = 0; group < cost->n_kv_group; group++) {
            int window = cost->kv[group].window;
            double seen = 0,
                   moved = rows[next - 1].pos + 1 - first_seen(window, rows[first].pos) + (next - first);
            int from;
            if (kv && first > 0)
                moved -= cake_kv_shared(&kv[group], &rows[first - 1], &rows[next - 1], &from);
            for (int i = first; i < next; i++)
                seen += seen_by(cost, group, &rows[i]);
            work.flops += seen * cost->kv[group].position_flops;
            work.bytes += moved * cost->kv[group].position_bytes;
        }
    }
    for (int i = 0; i < n_row; i++)
        if (rows[i].no_output)
            work.flops -= cost->no_output.row_flops +
                          cost->no_output.position_flops * seen_by(cost, cost->no_output.group, &rows[i]);
    return work;
}

static double longer(double balance, double flops, double bytes)
{
    return flops > bytes * balance ? flops : bytes * balance;
}

double cake_cost_seen(const cake_cost *cost, int group, bool prompt)
{
    return longer(cost->balance, cost->kv[group].position_flops, prompt ? 0 : cost->kv[group].position_bytes);
}

double cake_cost_row(const cake_cost *cost, int pos, bool prompt)
{
    double flops = cost->row_flops + longer(cost->balance, 0, prompt ? 0 : cost->sequence_bytes);
    for (int group = 0; group < cost->n_kv_group; group++)
        flops += (pos + 1 - first_seen(cost->kv[group].window, pos)) * cake_cost_seen(cost, group, prompt);
    return flops;
}

double cake_cost_scores(const cake_config *config)
{
    const double draw = 16;
    return (2.0 * config->dim + draw) * config->n_vocab;
}
