/* SPDX-License-Identifier: Apache-2.0
 *
 * In: statistics and plans of every rank. Out: arrays of them on world rank 0.
 * Invariant: a plan is sent as an array of n_layer + 1 hops, the last of which holds the number of hops, so
 * all ranks send the same number of bytes.
 */
#include "report/gather.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/weight_stream.h"

void cake_gather_links(cake_rank *me)
{
    const cake_comm *world = &me->replica;
    const cake_plan *plan = &me->planning.plan;
    double ahead;
    for (int e = plan->n_hop; e >= 0; e--) { /* backwards: a rank reports its first edge */
        int from = cake_plan_from(plan, e), to = cake_plan_to(plan, e);
        double seconds = cake_comm_clock_offset(world, to, from, &ahead);
        if (world->rank == to && seconds > 0)
            me->report.rtt_s = seconds;
    }
}

cake_plan *cake_gather_plans(const cake_comm *world, const cake_rank *me)
{
    size_t n = (size_t)cake_model_config(me->input.model)->n_layer + 1, each = n * sizeof(cake_hop);
    int ranks = world->size / me->planning.n_replica;
    cake_hop *mine = cake_alloc(n, sizeof *mine);
    cake_hop *all = world->rank ? NULL : cake_alloc((size_t)world->size, each);
    memcpy(mine, me->planning.plan.hop, (size_t)me->planning.plan.n_hop * sizeof *mine);
    mine[n - 1].count = me->planning.plan.n_hop;
    cake_comm_gather(world, mine, all, each);
    cake_plan *plans = all ? cake_alloc((size_t)me->planning.n_replica, sizeof *plans) : NULL;
    for (int r = 0; all && r < me->planning.n_replica; r++) {
        const cake_hop *hops = all + (size_t)(r * ranks) * n;
        plans[r] = (cake_plan){.n_hop = hops[n - 1].count, .n_rank = ranks, .first = r * ranks};
        plans[r].hop = cake_alloc(n, sizeof(cake_hop));
        memcpy(plans[r].hop, hops, each);
    }
    free(mine);
    free(all);
    return plans;
}

void cake_gather_free_plans(cake_plan *plans, int n)
{
    for (int r = 0; plans && r < n; r++)
        cake_plan_free(&plans[r]);
    free(plans);
}

void cake_gather_stats(const cake_comm *world, cake_rank *me, const cake_pipeline *pipeline,
                       const cake_engine *root, cake_gathered *out)
{
    cake_report_stage *mine = &me->report;
    cake_stage_stats stats = cake_pipeline_statistics(pipeline);
    mine->compute_s = stats.compute_s;
    mine->busy_s = stats.busy_s;
    mine->move_s = stats.move_s;
    mine->run_s = stats.run_s;
    mine->link_bytes = stats.link_bytes;
    mine->joules = stats.joules;
    for (int i = 0; i < me->n_slices; i++)
        for (int j = 0; j < me->slices[i].n; j++) {
            cake_roofline_merge(&mine->roofline, cake_slice_roofline(me->slices[i].slice[j]));
            cake_expert_use_merge(&mine->experts, cake_slice_experts(me->slices[i].slice[j]));
        }
    mine->bubble_s = stats.bubble_s;
    if (cake_model_stream(me->model)) {
        cake_stream_stats read = cake_weight_stream_statistics(cake_model_stream(me->model));
        mine->stream_bytes = read.bytes;
        mine->stream_s = read.active_s;
        mine->stream_wait_s = read.wait_s;
    }
    if (root) {
        mine->root = cake_engine_statistics(root);
        cake_roofline_merge(&mine->roofline, &mine->root.roofline);
    }
    mine->planned = 0;
    for (int i = 0; i < me->planning.plan.n_hop; i++)
        for (int j = 0;
             j < me->planning.plan.hop[i].count && me->planning.plan.hop[i].rank == me->replica.rank; j++)
            mine->planned +=
                me->input.layers.cost[me->planning.plan.hop[i].first + j] / me->cluster.speed[world->rank];
    *out = (cake_gathered){.n_replica = me->planning.n_replica};
    size_t n = (size_t)cake_model_config(me->input.model)->n_layer;
    if (world->rank == 0) {
        out->stages = cake_alloc((size_t)world->size, sizeof *out->stages);
        out->layer_s = cake_alloc((size_t)world->size, n * sizeof *out->layer_s);
    }
    cake_comm_gather(world, mine, out->stages, sizeof *mine);
    double *layer_s = cake_alloc(n, sizeof *layer_s);
    cake_pipeline_layers(pipeline, layer_s);
    cake_comm_gather(world, layer_s, out->layer_s, n * sizeof *layer_s);
    free(layer_s);
    out->plans = cake_gather_plans(world, me);
}

void cake_gather_free(cake_gathered *gathered)
{
    free(gathered->stages);
    free(gathered->layer_s);
    cake_gather_free_plans(gathered->plans, gathered->n_replica);
    *gathered = (cake_gathered){0};
}
