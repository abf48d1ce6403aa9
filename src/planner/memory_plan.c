/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a planning. Out: the size of waves, and the bytes that each rank takes of a memory.
 * Invariant: what is counted here is what will be allocated, to the byte.
 */
#include "planner/memory_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/size.h"
#include "engine/mtp.h"
#include "engine/pipeline.h"
#include "engine/speculation.h"
#include "logits/logits.h"
#include "model/weight_stream.h"
#include "planner/offload.h"

cake_slice_shape cake_memory_plan_slice(const cake_planning *p, const cake_hop *hop)
{
    cake_slice_shape shape = {.first = hop->first,
                              .count = hop->count,
                              .max_row = p->shape.max_row,
                              .n_slot = p->shape.n_lane * p->shape.lane_seqs,
                              .n_saved = p->shape.n_saved + p->shape.n_spare,
                              .context = p->max_positions,
                              .kv_dtype = p->input->kv_dtype,
                              .n_thread = p->input->n_thread,
                              .n_decode = p->input->n_decode};
    memcpy(shape.n_page, p->shape.n_page, sizeof shape.n_page);
    return shape;
}

void cake_memory_plan_add_kv(const cake_planning *p, const cake_hop *hop, cake_kv_use *kv)
{
    const cake_config *config = cake_model_config(p->input->model);
    cake_slice_shape shape = cake_memory_plan_slice(p, hop);
    kv->state += (int64_t)cake_slice_state_bytes(config, &shape);
    for (int group = 0; group < config->n_kv_group; group++)
        kv->page[group] += (int64_t)cake_slice_page_bytes(config, &shape, group);
}

cake_kv_use cake_memory_plan_rank_kv(const cake_planning *p, const cake_plan *plan, int rank)
{
    const cake_hop mtp = cake_offload_mtp(p);
    cake_kv_use kv = {0};
    for (int i = 0; i < plan->n_hop; i++)
        if (plan->hop[i].rank == rank)
            cake_memory_plan_add_kv(p, &plan->hop[i], &kv);
    if (rank == mtp.rank && mtp.count)
        cake_memory_plan_add_kv(p, &mtp, &kv);
    return kv;
}

int64_t cake_memory_plan_rank_cache(const cake_planning *p, const cake_plan *plan, int rank)
{
    const cake_config *config = cake_model_config(p->input->model);
    const cake_hop mtp = cake_offload_mtp(p);
    int64_t bytes = 0;
    for (int i = 0; i <= plan->n_hop; i++) {
        const cake_hop *hop = i < plan->n_hop ? &plan->hop[i] : &mtp;
        cake_slice_shape shape = cake_memory_plan_slice(p, hop);
        bytes += hop->rank == rank && hop->count ? (int64_t)cake_slice_kv_bytes(config, &shape) : 0;
    }
    return bytes;
}

int64_t cake_memory_plan_states(const cake_planning *p, const cake_kv_use *kv)
{
    return kv->state * cake_schedule_states(&p->shape);
}

int64_t cake_memory_plan_fit_seqs(const cake_planning *p, const cake_kv_use *kv, int64_t cache)
{
    int64_t states = cake_memory_plan_states(p, kv), max_states = cache > 0 ? cache / 2 : 0;
    int seqs = p->shape.lane_seqs;
    return states > max_states ? max_states / ((states + seqs - 1) / seqs) : seqs;
}

int cake_memory_plan_fit_pages(const cake_planning *p, const cake_kv_use *kv, int64_t cache)
{
    int max_pages[CAKE_MAX_KV_GROUPS];
    int64_t left = cache - cake_memory_plan_states(p, kv);
    cake_memory_plan_max_pages(p, max_pages);
    return cake_plan_pages(p->shape.n_kv_group, kv->page, max_pages, left > 0 ? left : 0);
}

void cake_memory_plan_set_pages(cake_planning *p, int64_t pages)
{
    int max_pages[CAKE_MAX_KV_GROUPS];
    cake_memory_plan_max_pages(p, max_pages);
    for (int group = 0; group < p->shape.n_kv_group; group++)
        p->shape.n_page[group] = pages < max_pages[group] ? (int)pages : max_pages[group];
}

int64_t cake_memory_plan_kv_bytes(const cake_planning *p, const cake_kv_use *kv)
{
    int64_t bytes = cake_memory_plan_states(p, kv);
    for (int group = 0; group < p->shape.n_kv_group; group++)
        bytes += p->shape.n_page[group] * kv->page[group];
    return bytes;
}

/* Page tables are as long as the longest sequence. A config may promise a context of billions of tokens, but
 * no sequence outgrows the memory for its full-attention layers. */
int cake_memory_plan_rank_max_positions(const cake_planning *p, int rank, int64_t memory)
{
    const cake_config *config = cake_model_config(p->input->model);
    const cake_kv_use kv = cake_memory_plan_rank_kv(p, &p->plan, rank);
    int64_t bytes = 0, pages = INT32_MAX;
    memory = p->input->kv_memory > 0 ? p->input->kv_memory : memory;
    for (int group = 0; group < config->n_kv_group; group++)
        bytes += config->kept_window[group] ? 0 : kv.page[group];
    if (bytes && memory / bytes < pages)
        pages = memory / bytes > 1 ? memory / bytes : 1;
    return pages < p->input->context / CAKE_PAGE ? (int)pages * CAKE_PAGE : p->input->context;
}

int cake_memory_plan_max_positions(const cake_planning *p)
{
    int min_positions = p->input->context;
    for (int i = 0; i < p->plan.n_rank; i++) {
        int positions =
            cake_memory_plan_rank_max_positions(p, i, p->cluster->resources[p->plan.first + i].memory);
        min_positions = positions < min_positions ? positions : min_positions;
    }
    return min_positions;
}

/* Bytes that only rank 0 of a replica takes, without waves. */
static int64_t measure_root(const cake_planning *p, const cake_plan *plan, int n_thread,
                            const cake_kernels *kernels)
{
    const cake_config *config = cake_model_config(p->input->model);
    const cake_kernels *head = cake_offload_head(p, plan);
    int rows = cake_engine_max_score(config, &p->shape);
    int64_t bytes = head == kernels ? (int64_t)cake_logits_bytes(config, kernels, rows, n_thread) : 0;
    if (kernels->memory) {
        bool embeds = cake_offload_embed(p, plan) == kernels;
        return bytes + (embeds ? (int64_t)cake_engine_device_bytes(config, &p->shape) : 0);
    }
    bytes += (int64_t)cake_engine_bytes(config, &p->shape, n_thread);
    bytes +=
        config->mtp ? (int64_t)cake_mtp_bytes(p->input->model, kernels, p->wave_bytes, p->shape.max_row) : 0;
    bytes += plan->first ? p->input->client_bytes : (p->n_replica - 1) * p->input->dispatch_bytes;
    return bytes + (head->memory ? (int64_t)cake_logits_host_bytes(config, rows, n_thread) : 0);
}

/* Bytes that threads need to read weights for waves, if some are. */
static int64_t reader_bytes(const cake_planning *p, const cake_plan *plan, int rank, int n_thread)
{
    cake_weight_split split;
    cake_offload_split(p, plan, rank, &split);
    size_t bytes = split.n_buffer ? cake_weight_stream_bytes(p->input->model, n_thread) : 0;
    cake_weight_split_free(&split);
    return (int64_t)bytes;
}

cake_memory_use cake_memory_plan_measure(const cake_planning *p, const cake_plan *plan, int rank,
                                         int n_thread, const cake_kernels *kernels)
{
    const cake_config *config = cake_model_config(p->input->model);
    cake_hop_part *part = cake_alloc((size_t)plan->n_hop + 2, sizeof *part);
    int n_part = cake_offload_of(p, plan, rank, part);
    cake_memory_use r = {.kernels = kernels};
    for (int i = 0; i < n_part; i++) {
        if (part[i].kernels != kernels)
            continue;
        cake_slice_shape shape = cake_memory_plan_slice(p, &part[i].hop);
        memset(shape.n_page, 0, sizeof shape.n_page);
        r.tables += (int64_t)cake_slice_kv_bytes(config, &shape);
        r.fixed += (int64_t)cake_slice_scratch_bytes(p->input->model, kernels, &shape);
        cake_memory_plan_add_kv(p, &part[i].hop, &r.kv);
    }
    r.tables -= cake_memory_plan_states(p, &r.kv); /* kv_bytes without pages: tables and states */
    if (!kernels->memory && p->input->weights_memory)
        r.fixed += reader_bytes(p, plan, rank, n_thread);
    if (!kernels->memory)
        r.fixed += (int64_t)cake_pipeline_bytes(plan, rank, p->shape.n_lane, p->wave_bytes);
    else
        r.fixed += cake_offload_edge_bytes(p, plan, rank);
    r.fixed += r.tables;
    if (rank == 0)
        r.fixed += measure_root(p, plan, n_thread, kernels);
    free(part);
    return r;
}

int64_t cake_memory_plan_overhead_bytes(const cake_planning *p, int rank, int n_thread)
{
    return cake_memory_plan_measure(p, &p->plan, rank, n_thread, cake_offload_first(p->input)).fixed;
}

int64_t cake_memory_plan_buffer_bytes(const cake_planning *p, const cake_plan *plan, int rank, int n_thread)
{
    const cake_kernels *kernels[2];
    int64_t bytes = 0;
    for (int i = cake_offload_memories(p->input, kernels); i-- > 0;) {
        cake_memory_use r = cake_memory_plan_measure(p, plan, rank, n_thread, kernels[i]);
        bytes += r.fixed - r.tables;
    }
    return bytes;
}

/* Recurrent states kept for shared prefixes: enough for a few prefixes at a time. */
enum { MAX_SPARE = 4 }; /* sequences with drafts at the same time, if there are recurrent layers */

static int saved_states(int n_slot)
{
    enum { MAX_SAVED = 8 };
    return n_slot < 8 * MAX_SAVED ? (n_slot + 7) / 8 : MAX_SAVED;
}

/* A rank with several hops makes waves queue, so more of them have to be in flight; but not without limit,
 * since every hop has buffers for all waves. All replicas use the same number. */
static int stages_of(const cake_planning *p)
{
    const cake_plan *plan = &p->plan;
    int hops = p->max_hops > plan->n_hop ? p->max_hops : plan->n_hop, limit = 2 * plan->n_rank;
    return hops <= plan->n_rank ? plan->n_rank : hops < limit ? hops : limit;
}

/* Rows of a wave that are computed in the time in which weights that are not held are read: a power of two,
 * so that it does not vary with measured rates. Buffers take an eighth of the memory at most. */
static double reading_rows(const cake_planning *p)
{
    const cake_plan_input *in = p->input;
    const cake_rank_resources *host = &p->cluster->resources[p->plan.first];
    double flops = p->cluster->rate[p->plan.first].flops, all = (double)in->layers.ends, rows = 1;
    if (!in->weights_memory || in->pack_rate <= 0 || flops <= 0 || p->cluster->gpus)
        return 0;
    for (int i = 0; i < cake_model_config(in->model)->n_layer; i++)
        all += (double)in->layers.bytes[i];
    double bytes = all * (1 - cake_planning_held_fraction(in, p->plan.n_rank));
    double seconds = bytes / in->pack_rate, from_disk = in->read_rate > 0 ? bytes / in->read_rate : 0;
    double most = (seconds > from_disk ? seconds : from_disk) * flops / in->cost.row_flops;
    cake_slice_shape shape = {.max_row = 1024, .n_slot = 1};
    double row_bytes = (double)cake_slice_scratch_bytes(in->model, in->kernels, &shape) / shape.max_row +
                       (double)cake_model_config(in->model)->n_vocab * sizeof(float);
    double fit = (double)host->memory / host->local_size / 8 / row_bytes;
    most = most < fit ? most : fit;
    while (rows <= most / sqrt(2))
        rows *= 2;
    return rows > 1 ? rows : 0;
}

int64_t cake_memory_plan_cache_bytes(int64_t requested, int64_t left, bool gpu)
{
    return requested ? cake_size_bytes(requested, left) : gpu ? left : left / 2;
}

void cake_memory_plan_batch_limits(cake_planning *p, int max_seqs)
{
    const cake_config *config = cake_model_config(p->input->model);
    const cake_cost all = p->input->cost;
    cake_batch_size size = {.max_seqs = p->input->max_seqs,
                            .chunk = p->input->chunk,
                            .n_stage = stages_of(p),
                            .n_vocab = config->n_vocab,
                            .expert_rows = all.n_expert ? (double)all.n_expert / all.n_chosen : 0,
                            .reading_rows = reading_rows(p),
                            .gpus = p->cluster->big_gpus,
                            .memory_seqs = max_seqs};
    if (size.n_stage > 1)
        size.max_row_cost = cake_cost_row(&all, p->input->context - 1, false) / all.row_flops;
    cake_batch_size_decide(&size);
    p->shape = (cake_schedule_shape){.n_lane = size.n_lane,
                                     .lane_seqs = size.lane_seqs,
                                     .chunk = size.chunk,
                                     .max_row = size.max_row,
                                     .n_kv_group = config->n_kv_group,
                                     .share = true};
    memcpy(p->shape.window, config->kept_window, sizeof p->shape.window);
    if (config->both_ways) { /* a prompt is one wave's, whole */
        p->shape.whole = true;
        p->shape.max_row = p->input->context > size.max_row ? p->input->context : size.max_row;
    }
    if (size.n_stage > 1) /* a single stage waits for nobody */
        cake_schedule_set_costs(&p->shape, &all, cake_planning_scores_cost(p));
    for (int i = 0; i < config->n_layer; i++)
        p->shape.states = p->shape.states || config->layer[i].mixer == CAKE_MIX_DELTA;
    const int n_slot = size.n_lane * size.lane_seqs;
    p->shape.n_saved = p->shape.states ? saved_states(n_slot) : 0;
    p->shape.outputs = config->mtp;
    p->shape.n_draft = p->input->speculate && !config->headless ? CAKE_MAX_DRAFTS : 0;
    if (p->shape.states && p->shape.n_draft)
        p->shape.n_spare = n_slot < MAX_SPARE ? n_slot : MAX_SPARE;
    p->wave_bytes =
        cake_arena_round(cake_wave_bytes(p->shape.max_row, cake_schedule_changes(&p->shape), config->dim));
}

void cake_memory_plan_max_pages(const cake_planning *p, int *max)
{
    const cake_schedule_shape *shape = &p->shape;
    for (int group = 0; group < shape->n_kv_group; group++) {
        int64_t all = (int64_t)cake_pages_held(shape->window[group], p->input->context, shape->max_row) *
                      shape->n_lane * shape->lane_seqs;
        max[group] = all < INT32_MAX ? (int)all : INT32_MAX;
    }
}
