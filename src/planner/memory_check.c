/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a planning, the free memory of this rank and its host. Out: waves and KV pages that all ranks have
 * memory for, or one message that says what does not fit.
 * Invariant: what is counted here (memory_plan.c) is what will be allocated, to the byte.
 */
#include "planner/memory_check.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/size.h"
#include "planner/memory_fit.h"
#include "planner/memory_plan.h"
#include "planner/offload.h"

static cake_memory_use measure(const cake_comm *world, const cake_rank *me, const cake_kernels *kernels)
{
    cake_memory_use r = cake_memory_fit_measure(me, kernels);
    if (!kernels->memory) { /* no other rank needs GPU memory */
        r.n_rank = world->local_size;
        r.tables = cake_comm_node_sum(world, r.tables);
        r.all_fixed = cake_comm_node_sum(world, r.fixed);
    }
    r.cache = cake_memory_fit_cache(me, &r);
    return r;
}

/* The minimum over all ranks of the sequences of a lane whose states have memory. all [n]: this rank's
 * memories. */
static int fit_seqs(const cake_comm *world, const cake_rank *me, const cake_memory_use *all, int n)
{
    int64_t seqs = me->planning.shape.lane_seqs;
    for (int i = 0; i < n; i++) {
        int64_t fit = cake_memory_plan_fit_seqs(&me->planning, &all[i].kv, all[i].cache);
        seqs = fit < seqs ? fit : seqs;
    }
    return (int)cake_comm_allreduce_min(world, seqs);
}

/* Measures a rank's memories: all [2]; returns the count. */
static int measure_all(const cake_comm *world, const cake_rank *me, cake_memory_use *all)
{
    const cake_kernels *kernels[2];
    int n = cake_offload_memories(&me->input, kernels);
    for (int i = 0; i < n; i++)
        all[i] = measure(world, me, kernels[i]);
    cake_memory_fit_divide(me, all, n);
    return n;
}

/* Sets the pages of each group that all ranks have memory for. all [n]: this rank's memories. */
static void count_pages(const cake_comm *world, cake_rank *me, const cake_memory_use *all, int n)
{
    int64_t pages = INT32_MAX;
    for (int i = 0; i < n; i++) {
        int fit = cake_memory_plan_fit_pages(&me->planning, &all[i].kv, all[i].cache);
        pages = fit < pages ? fit : pages;
    }
    cake_memory_plan_set_pages(&me->planning, cake_comm_allreduce_min(world, pages));
}

/* Bytes that the ranks of this host read from files; replicas read the same bytes, which count once. */
static int64_t host_file_bytes(const cake_comm *world, const cake_rank *me)
{
    cake_range range = {0, cake_model_config(me->input.model)->n_layer};
    cake_weight_set whole = {.range = &range, .n_range = 1, .embed = true, .head = true};
    cake_range *ranges = cake_alloc((size_t)me->planning.plan.n_hop + 2, sizeof *ranges);
    const cake_kernels *kernels[2];
    int64_t own = 0;
    for (int i = cake_offload_memories(&me->input, kernels); i-- > 0;) {
        cake_weight_set set =
            cake_offload_weight_set(&me->planning, &me->planning.plan, me->replica.rank, kernels[i], ranges);
        own += cake_model_bytes_in_files(me->input.model, &set);
    }
    free(ranges);
    int64_t all = cake_comm_node_sum(world, own),
            max_bytes = cake_model_bytes_in_files(me->input.model, &whole);
    return all < max_bytes ? all : max_bytes;
}

/* Logs how layers are split between GPU and CPUs; warn: because the GPU is too small. */
static void log_split(const cake_comm *world, const cake_rank *me, int own, bool warn)
{
    char all[32], on_gpu[32], on_host[32];
    int rank = me->replica.rank;
    snprintf(all, sizeof all, "%s", cake_size_text(me->gpu.memory).s);
    snprintf(
        on_gpu, sizeof on_gpu, "%s",
        cake_size_text(cake_offload_weights(&me->planning, &me->planning.plan, rank, me->input.gpu_kernels))
            .s);
    snprintf(
        on_host, sizeof on_host, "%s",
        cake_size_text(cake_offload_weights(&me->planning, &me->planning.plan, rank, me->input.kernels)).s);
    cake_log(warn ? CAKE_WARN : CAKE_INFO, "planner",
             "rank %d: %d of its %d layers are on GPU %d, which has %s (weights %s); "
             "the others (%s) are on CPUs%s",
             world->rank, me->planning.gpu_layers, own, me->gpu.number, all, on_gpu, on_host,
             warn ? ", which is slow: no more of them fit; use more GPUs" : "");
}

/* Chooses how many layers this rank's GPU gets; without --gpu-layers as many as leave a part of its memory to
 * the KV cache. */
static void choose_gpu_layers(const cake_comm *world, cake_rank *me)
{
    const int part = 16;
    int own = cake_offload_layers(&me->planning.plan, me->replica.rank);
    const bool chosen = me->input.max_gpu_layers < INT_MAX;
    me->planning.gpu_layers = me->input.max_gpu_layers < own ? me->input.max_gpu_layers : own;
    for (; me->input.gpu_kernels && !chosen && me->planning.gpu_layers > 0; me->planning.gpu_layers--) {
        cake_memory_use r = cake_memory_plan_measure(&me->planning, &me->planning.plan, me->replica.rank,
                                                     me->input.n_thread, me->input.gpu_kernels);
        int64_t weights =
            cake_offload_weights(&me->planning, &me->planning.plan, me->replica.rank, me->input.gpu_kernels);
        if (r.fixed + weights + me->gpu.memory / part <= me->gpu.memory)
            break;
    }
    if (me->input.gpu_kernels && me->planning.gpu_layers < own)
        log_split(world, me, own, !chosen);
}

/* Checks GPU memory first, then host memory. The rank that lacks the most logs. */
static cake_err check_all(const cake_comm *world, const cake_rank *me, const cake_memory_use *all, int n,
                          const int64_t *kv)
{
    cake_err err = CAKE_OK;
    for (int on_host = !me->cluster.gpus; on_host < 2 && !err; on_host++) {
        int i = on_host ? n - 1 : 0;
        const cake_memory_use *r = on_host || me->input.gpu_kernels ? &all[i] : NULL; /* no GPU here */
        int64_t all_kv = on_host ? cake_comm_node_sum(world, kv[i]) : kv[i];
        int64_t missing = r && r->memory < r->all_fixed ? -r->fixed : 0,
                worst = cake_comm_allreduce_min(world, missing);
        bool reports =
            cake_comm_allreduce_min(world, missing == worst ? world->rank : INT64_MAX) == world->rank;
        err = cake_comm_agree(world, r ? cake_memory_fit_check(world, me, r, all_kv, reports) : CAKE_OK);
    }
    return err;
}

/* Fails if a rank must hold more than --weights-memory; the one that must hold the most logs. */
static cake_err check_weights_memory(const cake_comm *world, const cake_rank *me)
{
    cake_weight_split split;
    if (!me->input.weights_memory)
        return CAKE_OK;
    cake_offload_split(&me->planning, &me->planning.plan, me->replica.rank, &split);
    bool lacks = split.limit < split.min_bytes;
    int64_t own = lacks ? -split.min_bytes : 0;
    bool worst = lacks && cake_comm_allreduce_min(world, own) == own;
    if (!lacks)
        cake_comm_allreduce_min(world, own);
    bool logs = cake_comm_allreduce_min(world, worst ? world->rank : INT64_MAX) == world->rank;
    cake_err err = lacks ? CAKE_ERR_FATAL : CAKE_OK;
    if (logs)
        err = cake_fail(
            "planner",
            "--weights-memory %s: rank %d on %s holds at least %s (%lld bytes) of its %s of weights: norms, "
            "routers, embedding and head take %s, the rest is buffers for the matrices of a layer; "
            "give it more, or start fewer ranks, so that each has several layers",
            cake_size_text(split.limit).s, world->rank, world->host, cake_size_text(split.min_bytes).s,
            (long long)split.min_bytes, cake_size_text(split.all).s, cake_size_text(split.fixed).s);
    cake_weight_split_free(&split);
    return cake_comm_agree(world, err);
}

cake_err cake_memory_check(const cake_comm *world, cake_rank *me)
{
    cake_memory_use all[2], *first = &all[0];
    int64_t kv[2] = {0};
    first->kernels = cake_offload_first(&me->input);
    first->memory = me->input.gpu_kernels ? me->gpu.memory : me->machine.memory;
    int64_t limit = cake_memory_fit_limit(me, first), usable = limit < first->memory ? limit : first->memory;
    me->planning.max_positions = (int)cake_comm_allreduce_min(
        world, cake_memory_plan_rank_max_positions(&me->planning, me->replica.rank, usable));
    cake_memory_plan_batch_limits(&me->planning, 0);
    choose_gpu_layers(world, me);
    if (check_weights_memory(world, me))
        return CAKE_ERR_FATAL;
    int64_t files = host_file_bytes(world, me);

    int n = measure_all(world, me, all);
    int seqs = fit_seqs(world, me, all, n);
    if (!me->input.max_seqs && seqs < me->planning.shape.lane_seqs) {
        cake_memory_plan_batch_limits(&me->planning, seqs > 0 ? seqs : 1);
        n = measure_all(world, me, all);
    }
    if (fit_seqs(world, me, all, n) <
        me->planning.shape.lane_seqs) { /* saved and spare states are optional */
        me->planning.shape.n_saved = me->planning.shape.n_spare = 0;
        n = measure_all(world, me, all);
    }
    count_pages(world, me, all, n);
    me->report.weights_bytes = 0;
    for (int i = 0; i < n; i++) {
        kv[i] = cake_memory_plan_kv_bytes(&me->planning, &all[i].kv);
        me->report.weights_bytes += all[i].weights;
        cake_log(CAKE_DEBUG, "planner",
                 "%d lanes of %d sequences, waves of %d rows, %d KV pages, %s; weights %s, %s in all of %s; "
                 "%d threads",
                 me->planning.shape.n_lane, me->planning.shape.lane_seqs, me->planning.shape.max_row,
                 me->planning.shape.n_page[0], cake_size_text(kv[i]).s, cake_size_text(all[i].weights).s,
                 cake_size_text(all[i].fixed + kv[i]).s, all[i].kernels->name, me->input.n_thread);
    }
    const cake_memory_use *host_use = &all[n - 1];
    int64_t left = host_use->memory - host_use->all_fixed - cake_comm_node_sum(world, kv[n - 1]);
    me->drop = left < files;
    me->cache = left > 0 ? left / world->local_size / 10 * 9 : 0;
    return check_all(world, me, all, n, kv);
}
