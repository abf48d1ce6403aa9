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
#include "planner/memory_plan.h"
#include "planner/offload.h"
#include "planner/partition.h"
#include "planner/topology_io.h"

/* The topology file's limit for weights and cache of this rank: of its GPU's memory, if it has one. */
static int64_t memory_limit(const cake_rank *me, const cake_memory_use *r)
{
    int64_t from_file = me->input.gpu_kernels && !r->kernels->memory ? 0 : me->topology_rank.memory;
    return from_file > 0 ? from_file : from_file < 0 ? r->memory / 100 * -from_file : INT64_MAX;
}

static cake_memory_use measure(const cake_comm *world, const cake_rank *me, const cake_kernels *kernels)
{
    const bool on_gpu = kernels->memory;
    int rank = me->replica.rank;
    cake_memory_use r =
        cake_memory_plan_measure(&me->planning, &me->planning.plan, rank, me->input.n_thread, kernels);
    r.memory = on_gpu ? me->gpu.memory : me->machine.memory;
    r.n_rank = on_gpu ? 1 : world->local_size;
    r.weights = cake_offload_weights(&me->planning, &me->planning.plan, rank, kernels);
    r.fixed += r.weights;
    r.tables = on_gpu ? r.tables : cake_comm_node_sum(world, r.tables);
    r.all_fixed = on_gpu ? r.fixed : cake_comm_node_sum(world, r.fixed);
    int64_t left = (r.memory - r.all_fixed) / r.n_rank;
    if (!on_gpu && left > me->mapping - r.fixed)
        left = me->mapping - r.fixed;
    r.cache =
        cake_memory_plan_cache_bytes(me->input.kv_memory, left, on_gpu); /* no other rank needs GPU memory */
    if (r.cache > memory_limit(me, &r) - r.weights)
        r.cache = memory_limit(me, &r) - r.weights;
    return r;
}

/* One page of each group. */
static int64_t page_set_bytes(const cake_planning *p, const cake_memory_use *r)
{
    int64_t bytes = 0;
    for (int group = 0; group < p->shape.n_group; group++)
        bytes += r->kv.page[group];
    return bytes;
}

/* The weight of a memory when a requested cache size is divided. */
static double kv_share(const cake_planning *p, const cake_memory_use *r)
{
    return (double)(cake_memory_plan_states(p, &r->kv) + page_set_bytes(p, r));
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

/* Measures a rank's memories: all [2]; returns the count. A requested cache size is divided between them by
 * their layers. */
static int measure_all(const cake_comm *world, const cake_rank *me, cake_memory_use *all)
{
    const cake_kernels *kernels[2];
    int n = cake_offload_memories(&me->input, kernels);
    double total = 0;
    for (int i = 0; i < n; i++) {
        all[i] = measure(world, me, kernels[i]);
        total += kv_share(&me->planning, &all[i]);
    }
    for (int i = 0; i < n && n > 1 && me->input.kv_memory > 0 && total > 0; i++)
        all[i].cache = (int64_t)((double)all[i].cache * kv_share(&me->planning, &all[i]) / total);
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

cake_err cake_memory_check_too_large(const cake_planning *p, const cake_memory_lack *lack)
{
    const char *unit = lack->n_local ? "host" : p->cluster->gpus ? "GPU" : "rank";
    int per_unit = lack->n_local ? lack->n_local : 1;
    int min_ranks =
        lack->layers_of
            ? 0
            : lack->n_pipeline * cake_partition_min_ranks(p, lack->each - lack->overhead, lack->n_sharing);
    int n = (min_ranks + per_unit - 1) / per_unit;
    char advice[128], each[32] = "";
    if (lack->n_local)
        snprintf(each, sizeof each, " with %d rank%s each", lack->n_local, lack->n_local == 1 ? "" : "s");
    if (lack->layers_of)
        snprintf(advice, sizeof advice, "give %s fewer layers, or a host with more memory", lack->layers_of);
    else if (!min_ranks)
        snprintf(advice, sizeof advice, "however many ranks there are, one of them needs %s",
                 cake_size_text(cake_partition_max_layer_bytes(p) + lack->overhead).s);
    else if (lack->n_local ? min_ranks > lack->n_rank : min_ranks != lack->n_rank)
        snprintf(advice, sizeof advice, "%d such %s%s%s would do (%s %d)", n, unit, n == 1 ? "" : "s", each,
                 lack->option, min_ranks);
    else
        snprintf(advice, sizeof advice, "use more %ss", unit);
    return cake_fail("planner", "%sthe model does not fit: %s, %s too little; %s%s", lack->at, lack->needs,
                     cake_size_text(lack->bytes).s, advice, lack->where);
}

/* On the rank that reports. where: the end of the message, "" without a topology file. */
static cake_err fail_too_large(const cake_comm *world, const cake_rank *me, const cake_memory_use *r,
                               const char *where)
{
    const bool on_gpu = r->kernels->memory;
    cake_topology_at at = {""};
    if (*where)
        at = cake_topology_io_at(&me->topology_file, me->topology_rank.at);
    char needs[256];
    if (on_gpu)
        snprintf(needs, sizeof needs, "rank %d needs %s (weights %s), but its share of GPU %d of %s is %s",
                 world->rank, cake_size_text(r->fixed).s, cake_size_text(r->weights).s, me->gpu.number,
                 world->host, cake_size_text(r->memory).s);
    else
        snprintf(needs, sizeof needs,
                 "rank %d needs %s (weights %s), the %d rank%s of %s together %s, but %s of memory are free",
                 world->rank, cake_size_text(r->fixed).s, cake_size_text(r->weights).s, world->local_size,
                 world->local_size == 1 ? "" : "s", world->host, cake_size_text(r->all_fixed).s,
                 cake_size_text(r->memory).s);
    cake_memory_lack lack = {.at = at.s,
                             .needs = needs,
                             .where = where,
                             .layers_of = *where ? "it" : NULL,
                             .option = "-np",
                             .bytes = r->all_fixed - r->memory,
                             .each = r->memory / r->n_rank,
                             .overhead = r->fixed - r->weights,
                             .n_rank = world->size,
                             .n_sharing = r->n_rank,
                             .n_local = on_gpu ? 0 : world->local_size,
                             .n_pipeline = me->auto_replicas ? 1 : me->planning.n_replica};
    return cake_memory_check_too_large(&me->planning, &lack);
}

/* Limits and requests of the topology file. */
static cake_err check_topology_limits(const cake_rank *me, const cake_memory_use *r)
{
    const cake_topology_rank *from_file = &me->topology_rank;
    int64_t weights = r->weights, limit = memory_limit(me, r), requested = me->input.kv_memory,
            free_bytes = r->memory;
    if (me->input.gpu_kernels && !r->kernels->memory)
        return CAKE_OK;
    cake_topology_at at = {""};
    if (from_file->memory)
        at = cake_topology_io_at(&me->topology_file, from_file->memory_at);
    if (from_file->memory > free_bytes)
        return cake_fail("planner", "%smemory is %s for worker '%s', but %s are free there; give it less",
                         at.s, cake_size_text(limit).s, from_file->worker, cake_size_text(free_bytes).s);
    if (from_file->kv_memory > free_bytes)
        return cake_fail("planner", "%skv_memory is %s for worker '%s', but %s are free there; give it less",
                         cake_topology_io_at(&me->topology_file, from_file->kv_memory_at).s,
                         cake_size_text(requested).s, from_file->worker, cake_size_text(free_bytes).s);
    if (weights > limit)
        return cake_fail(
            "planner",
            "%smemory is %s for worker '%s', but the weights of its layers take %s; give it more, "
            "or fewer layers",
            at.s, cake_size_text(limit).s, from_file->worker, cake_size_text(weights).s);
    if (from_file->memory && requested > limit - weights)
        return cake_fail("planner",
                         "%smemory is %s for worker '%s', "
                         "but the requested KV cache takes %s and the weights %s; "
                         "give it more, fewer layers or less kv_memory",
                         at.s, cake_size_text(limit).s, from_file->worker, cake_size_text(requested).s,
                         cake_size_text(weights).s);
    return CAKE_OK;
}

/* The limit of this process's address space (ulimit -v). */
static cake_err check_mapping_limit(const cake_comm *world, const cake_rank *me, const cake_memory_use *r)
{
    int64_t requested = me->input.kv_memory > 0 ? me->input.kv_memory : 0, needs = r->fixed + requested;
    if (needs <= me->mapping)
        return CAKE_OK;
    return cake_fail("planner",
                     "ulimit -v lets rank %d on %s map %s more, but weights (%s)%s and buffers take %s, "
                     "%s too little; raise the limit, or use more ranks",
                     world->rank, world->host, cake_size_text(me->mapping).s, cake_size_text(r->weights).s,
                     requested ? ", the requested KV cache" : "", cake_size_text(needs).s,
                     cake_size_text(needs - me->mapping).s);
}

/* Fails if a memory is too small, before anything is loaded. all_kv: bytes of pages and states of all ranks
 * that share the memory; reports: this rank logs for all that lack memory. */
static cake_err check_memory(const cake_comm *world, const cake_rank *me, const cake_memory_use *r,
                             int64_t all_kv, bool reports)
{
    const cake_topology_rank *from_file = &me->topology_rank;
    cake_topology_at worker_text = cake_topology_io_where(&me->topology_file, from_file), at = {""};
    const char *where = worker_text.s, *more = from_file->kv_memory ? "kv_memory"
                                               : r->kernels->memory && !me->input.kv_memory
                                                   ? "of the GPU (fewer --gpu-layers)"
                                                   : "--kv-memory";
    int64_t left = r->memory - r->all_fixed, states = cake_memory_plan_states(&me->planning, &r->kv),
            page_set = page_set_bytes(&me->planning, r);
    cake_err err = check_topology_limits(me, r);
    if (err)
        return err;
    if (left < 0 && left + r->tables > 0 && r->tables > r->memory / 4)
        return !reports ? CAKE_ERR_FATAL
                        : cake_fail("planner",
                                    "the page tables of %d sequences of up to %d tokens take %s on %s, "
                                    "where %s are left; use --context %d or less, or fewer --max-seqs",
                                    me->planning.shape.n_lane * me->planning.shape.lane_seqs,
                                    me->planning.max_positions, cake_size_text(r->tables).s, world->host,
                                    cake_size_text(left + r->tables).s,
                                    (int)(me->planning.max_positions *
                                          (0.5 * (double)(left + r->tables) / (double)r->tables)));
    if (left < 0)
        return reports ? fail_too_large(world, me, r, where) : CAKE_ERR_FATAL;
    if (!r->kernels->memory && (err = check_mapping_limit(world, me, r)))
        return err;
    if (from_file->kv_memory)
        at = cake_topology_io_at(&me->topology_file, from_file->kv_memory_at);
    if (states > 0 && states > r->cache)
        return cake_fail(
            "planner",
            "%sa KV cache of %s does not hold the recurrent states "
            "of %d sequence%s (%s on rank %d of %s); use more %s, fewer --max-seqs or more ranks%s",
            at.s, cake_size_text(r->cache > 0 ? r->cache : 0).s,
            me->planning.shape.n_lane * me->planning.shape.lane_seqs,
            cake_plural(me->planning.shape.n_lane * me->planning.shape.lane_seqs), cake_size_text(states).s,
            world->rank, world->host, more, where);
    if (states + page_set > r->cache)
        return cake_fail("planner",
                         "%sa KV cache of %s does not hold one page of %d tokens (%s on rank %d of %s%s); "
                         "use more %s or more ranks%s",
                         at.s, cake_size_text(r->cache > 0 ? r->cache : 0).s, CAKE_PAGE,
                         cake_size_text(page_set).s, world->rank, world->host,
                         states ? ", in addition to the recurrent states" : "", more, where);
    if (all_kv > left && (r->kernels->memory || world->local_rank == 0))
        return cake_fail(
            "planner", "%s of KV cache of %d rank%s do not fit into the %s left on %s; use less --kv-memory",
            cake_size_text(all_kv).s, r->n_rank, r->n_rank == 1 ? "" : "s", cake_size_text(left).s,
            world->host);
    return CAKE_OK;
}

/* Bytes that the ranks of this host read from files; replicas read the same bytes, which count once. */
static int64_t host_file_bytes(const cake_comm *world, const cake_rank *me)
{
    cake_range range = {0, cake_model_config(me->input.model)->n_layer};
    cake_weight_set whole = {.range = &range, .n_range = 1, .embed = true, .head = true};
    cake_range *ranges = cake_alloc((size_t)me->planning.plan.n_hop + 1, sizeof *ranges);
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
        err = cake_comm_agree(world, r ? check_memory(world, me, r, all_kv, reports) : CAKE_OK);
    }
    return err;
}

cake_err cake_memory_check(const cake_comm *world, cake_rank *me)
{
    cake_memory_use all[2], *first = &all[0];
    int64_t kv[2] = {0};
    first->kernels = cake_offload_first(&me->input);
    first->memory = me->input.gpu_kernels ? me->gpu.memory : me->machine.memory;
    int64_t limit = memory_limit(me, first), usable = limit < first->memory ? limit : first->memory;
    me->planning.max_positions = (int)cake_comm_allreduce_min(
        world, cake_memory_plan_rank_max_positions(&me->planning, me->replica.rank, usable));
    cake_memory_plan_batch_limits(&me->planning, 0);
    choose_gpu_layers(world, me);
    int64_t files = host_file_bytes(world, me);

    int n = measure_all(world, me, all);
    int seqs = fit_seqs(world, me, all, n);
    if (!me->input.max_seqs && seqs < me->planning.shape.lane_seqs) {
        cake_memory_plan_batch_limits(&me->planning, seqs > 0 ? seqs : 1);
        n = measure_all(world, me, all);
    }
    if (fit_seqs(world, me, all, n) < me->planning.shape.lane_seqs) { /* saved states are optional */
        me->planning.shape.n_saved = 0;
        n = measure_all(world, me, all);
    }
    count_pages(world, me, all, n);
    me->report.weights_bytes = 0;
    for (int i = 0; i < n; i++) {
        kv[i] = cake_memory_plan_kv_bytes(&me->planning, &all[i].kv);
        me->report.weights_bytes += all[i].weights;
        cake_log(CAKE_DEBUG, "planner",
                 "%d lane%s of %d sequence%s, waves of %d row%s, %d KV page%s, %s; weights %s, %s in all of "
                 "%s; %d thread%s",
                 me->planning.shape.n_lane, cake_plural(me->planning.shape.n_lane),
                 me->planning.shape.lane_seqs, cake_plural(me->planning.shape.lane_seqs),
                 me->planning.shape.max_tok, cake_plural(me->planning.shape.max_tok),
                 me->planning.shape.n_page[0], cake_plural(me->planning.shape.n_page[0]),
                 cake_size_text(kv[i]).s, cake_size_text(all[i].weights).s,
                 cake_size_text(all[i].fixed + kv[i]).s, all[i].kernels->name, me->input.n_thread,
                 cake_plural(me->input.n_thread));
    }
    const cake_memory_use *host_use = &all[n - 1];
    me->drop = host_use->memory - host_use->all_fixed - cake_comm_node_sum(world, kv[n - 1]) < files;
    return check_all(world, me, all, n, kv);
}
