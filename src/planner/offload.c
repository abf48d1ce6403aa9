/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a plan, the number of offloaded layers. Out: the memory of each layer. The memory plan and the loader
 * both ask here, so what is counted is what is loaded.
 */
#include "planner/offload.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "engine/pipeline.h"
#include "link/link.h"

const cake_kernels *cake_offload_first(const cake_plan_input *input)
{
    return input->gpu_kernels ? input->gpu_kernels : input->kernels;
}

int cake_offload_memories(const cake_plan_input *input, const cake_kernels **kernels)
{
    int n = 0;
    if (input->gpu_kernels)
        kernels[n++] = input->gpu_kernels;
    kernels[n++] = input->kernels;
    return n;
}

static int on_gpu(const cake_planning *p, int rank)
{
    return !p->input->gpu_kernels ? 0 : rank == p->rank ? p->gpu_layers : p->input->max_gpu_layers;
}

int cake_offload_layers(const cake_plan *plan, int rank)
{
    int n = 0;
    for (int i = 0; i < plan->n_hop; i++)
        n += plan->hop[i].rank == rank ? plan->hop[i].count : 0;
    return n;
}

cake_hop cake_offload_mtp(const cake_planning *p)
{
    const cake_config *config = cake_model_config(p->input->model);
    return (cake_hop){0, config->n_layer, config->mtp};
}

int cake_offload_of(const cake_planning *p, const cake_plan *plan, int rank, cake_hop_part *part)
{
    int n = 0, left = on_gpu(p, rank);
    for (int i = 0; i < plan->n_hop; i++) {
        cake_hop hop = plan->hop[i];
        if (hop.rank != rank)
            continue;
        int n_offloaded = hop.count < left ? hop.count : left;
        if (n_offloaded)
            part[n++] = (cake_hop_part){{hop.rank, hop.first, n_offloaded}, p->input->gpu_kernels};
        if (n_offloaded < hop.count)
            part[n++] = (cake_hop_part){{hop.rank, hop.first + n_offloaded, hop.count - n_offloaded},
                                        p->input->kernels};
        left -= n_offloaded;
    }
    const cake_hop mtp = cake_offload_mtp(p);
    if (rank == mtp.rank && mtp.count)
        part[n++] = (cake_hop_part){mtp, p->input->kernels};
    return n;
}

const cake_kernels *cake_offload_head(const cake_planning *p, const cake_plan *plan)
{
    return p->input->gpu_kernels && on_gpu(p, 0) >= cake_offload_layers(plan, 0) ? p->input->gpu_kernels
                                                                                 : p->input->kernels;
}

const cake_kernels *cake_offload_embed(const cake_planning *p, const cake_plan *plan)
{
    return plan->hop[0].rank == 0 ? cake_offload_head(p, plan) : p->input->kernels;
}

/* Whether a hop's first layer, or with `last` its last one, is on a GPU. */
static bool is_on_gpu(const cake_planning *p, const cake_plan *plan, int hop, bool last)
{
    const cake_hop *at = &plan->hop[hop];
    int layer = last ? at->count - 1 : 0;
    for (int i = 0; i < hop; i++)
        layer += plan->hop[i].rank == at->rank ? plan->hop[i].count : 0;
    return layer < on_gpu(p, at->rank);
}

bool cake_offload_sends_device(const cake_planning *p, const cake_plan *plan, int e)
{
    return p->input->gpu_kernels &&
           (e > 0 ? is_on_gpu(p, plan, e - 1, true) : cake_offload_embed(p, plan) == p->input->gpu_kernels);
}

bool cake_offload_receives_device(const cake_planning *p, const cake_plan *plan, int e)
{
    return p->input->gpu_kernels && (e < plan->n_hop ? is_on_gpu(p, plan, e, false)
                                                     : cake_offload_head(p, plan) == p->input->gpu_kernels);
}

bool cake_offload_stays_on_device(const cake_planning *p, const cake_plan *plan, int e)
{
    const int from = cake_plan_from(plan, e), to = cake_plan_to(plan, e);
    return from == to && from == p->rank && cake_offload_sends_device(p, plan, e) &&
           cake_offload_receives_device(p, plan, e);
}

size_t cake_offload_body_bytes(const cake_planning *p)
{
    return (size_t)p->shape.max_row * (size_t)cake_model_config(p->input->model)->dim * sizeof(float);
}

int64_t cake_offload_edge_bytes(const cake_planning *p, const cake_plan *plan, int rank)
{
    size_t bytes = 0;
    for (int e = 0; e <= plan->n_hop && p->input->gpu_direct; e++)
        if (cake_plan_is_end(plan, e, rank) && cake_offload_sends_device(p, plan, e) &&
            cake_offload_receives_device(p, plan, e))
            bytes += cake_gpu_link_bytes(cake_pipeline_depth(p->shape.n_lane), cake_offload_body_bytes(p));
    return (int64_t)bytes;
}

cake_weight_set cake_offload_weight_set(const cake_planning *p, const cake_plan *plan, int rank,
                                        const cake_kernels *kernels, cake_range *ranges)
{
    cake_weight_set set = {.range = ranges,
                           .embed = rank == 0 && kernels == cake_offload_embed(p, plan),
                           .head = rank == 0 && kernels == cake_offload_head(p, plan),
                           .limit = kernels->memory ? 0 : p->input->weights_memory};
    cake_hop_part *part = cake_alloc((size_t)plan->n_hop + 2, sizeof *part);
    int n = cake_offload_of(p, plan, rank, part);
    for (int i = 0; i < n; i++)
        if (part[i].kernels == kernels)
            ranges[set.n_range++] = (cake_range){part[i].hop.first, part[i].hop.count};
    free(part);
    return set;
}

void cake_offload_split(const cake_planning *p, const cake_plan *plan, int rank, cake_weight_split *split)
{
    cake_range *ranges = cake_alloc((size_t)plan->n_hop + 2, sizeof *ranges);
    cake_weight_set set = cake_offload_weight_set(p, plan, rank, p->input->kernels, ranges);
    cake_weight_split_make(p->input->model, &set, p->input->kernels, split);
    free(ranges);
}

void cake_offload_report(const cake_planning *p, const cake_plan *plan, int rank, cake_report_stage *report)
{
    cake_weight_split split;
    report->wave_read_bytes = report->min_weights_bytes = 0;
    if (!p->input->weights_memory)
        return;
    cake_offload_split(p, plan, rank, &split);
    report->wave_read_bytes = split.wave_bytes;
    report->min_weights_bytes = split.min_bytes;
    cake_weight_split_free(&split);
}

int64_t cake_offload_weights(const cake_planning *p, const cake_plan *plan, int rank,
                             const cake_kernels *kernels)
{
    cake_range *ranges = cake_alloc((size_t)plan->n_hop + 2, sizeof *ranges);
    cake_weight_set set = cake_offload_weight_set(p, plan, rank, kernels, ranges);
    int64_t bytes = (int64_t)cake_model_bytes(p->input->model, &set, kernels);
    free(ranges);
    return bytes;
}
