/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a planning, the free memory of this rank and its host. Out: waves and KV pages that all ranks have
 * memory for, or one message of what does not fit.
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

/* What a topology file lets weights and cache of this rank take: of its GPU's memory, if it has one. */
static int64_t bound_of(const cake_rank *me, const cake_memory_use *r)
{
    int64_t said = me->input.gpu_kernels && !r->kernels->memory ? 0 : me->topology.memory;
    return said > 0 ? said : said < 0 ? r->memory / 100 * -said : INT64_MAX;
}

static cake_memory_use measure(const cake_comm *world, const cake_rank *me, const cake_kernels *kernels)
{
    const bool away = kernels->memory;
    int rank = me->replica.rank;
    cake_memory_use r =
        cake_memplan_measure(&me->planning, &me->planning.plan, rank, me->input.n_thread, kernels);
    r.memory = away ? me->gpu.memory : me->machine.memory;
    r.n_rank = away ? 1 : world->local_size;
    r.weights = cake_offload_weights(&me->planning, &me->planning.plan, rank, kernels);
    r.fixed += r.weights;
    r.tables = away ? r.tables : cake_comm_node_sum(world, r.tables);
    r.host = away ? r.fixed : cake_comm_node_sum(world, r.fixed);
    int64_t left = (r.memory - r.host) / r.n_rank;
    if (!away && left > me->mapping - r.fixed)
        left = me->mapping - r.fixed;
    r.cache =
        cake_memplan_cache_bytes(me->input.kv_memory, left, away); /* nobody else wants what the GPU has */
    if (r.cache > bound_of(me, &r) - r.weights)
        r.cache = bound_of(me, &r) - r.weights;
    return r;
}

static int64_t bytes_of_pages(const cake_planning *p, const cake_memory_use *r)
{
    int64_t bytes = r->states;
    for (int group = 0; group < p->shape.n_group; group++)
        bytes += r->page[group];
    return bytes;
}

/* States are there for every slot, pages for what is in them: states have half of the cache at most. */
static int64_t half_of(const cake_memory_use *r)
{
    return r->cache > 0 ? r->cache / 2 : 0;
}

/* A rank's memories: all [2]. What was asked for its cache is shared by the layers that are in them. */
static int measure_all(const cake_comm *world, const cake_rank *me, cake_memory_use *all)
{
    const cake_kernels *kernels[2];
    int n = cake_offload_memories(&me->input, kernels);
    double held = 0;
    for (int i = 0; i < n; i++) {
        all[i] = measure(world, me, kernels[i]);
        held += (double)bytes_of_pages(&me->planning, &all[i]);
    }
    for (int i = 0; i < n && n > 1 && me->input.kv_memory > 0 && held > 0; i++)
        all[i].cache =
            (int64_t)((double)all[i].cache * (double)bytes_of_pages(&me->planning, &all[i]) / held);
    return n;
}

/* Pages of each group that all ranks have memory for: all [n], of this one. */
static void count_pages(const cake_comm *world, cake_rank *me, const cake_memory_use *all, int n)
{
    cake_schedule_shape *shape = &me->planning.shape;
    int most[CAKE_MAX_KV_GROUPS];
    int64_t pages = INT32_MAX;
    cake_memplan_max_pages(&me->planning, most);
    for (int i = 0; i < n; i++) {
        int64_t memory = all[i].cache - all[i].states;
        int64_t fit = cake_plan_pages(shape->n_group, all[i].page, most, memory > 0 ? memory : 0);
        pages = fit < pages ? fit : pages;
    }
    pages = cake_comm_allreduce_min(world, pages);
    for (int group = 0; group < shape->n_group; group++)
        shape->n_page[group] = pages < most[group] ? (int)pages : most[group];
}

/* What pages and states have of a memory. */
static int64_t cache_bytes(const cake_planning *p, const cake_memory_use *r)
{
    int64_t bytes = r->states;
    for (int group = 0; group < p->shape.n_group; group++)
        bytes += p->shape.n_page[group] * r->page[group];
    return bytes;
}

/* By how much, and what would do: as many ranks as here on hosts with as much memory as this one has now. */
static cake_err too_large(const cake_comm *world, const cake_rank *me, const cake_memory_use *r,
                          const char *where)
{
    cake_topology_at at = {""};
    if (*where)
        at = cake_topology_io_at(&me->topology_file, me->topology.at);
    int64_t each = r->memory / r->n_rank, beside = r->fixed - r->weights;
    int least = *where ? 0
                       : cake_partition_min_ranks(&me->planning, each - beside, r->n_rank) *
                             (me->auto_replicas ? 1 : me->planning.n_replica);
    char would[128] = "use more hosts", lack[32];
    snprintf(lack, sizeof lack, "%s", cake_size_text(r->host - r->memory).s);
    if (r->kernels->memory) {
        char enough[64] = "";
        if (least > world->size)
            snprintf(enough, sizeof enough, "; %d such GPUs would do (-np %d)", least, least);
        return cake_fail(
            "planner",
            "the model does not fit: rank %d needs %s (weights %s), and its part of GPU %d of %s is %s, "
            "%s too little%s%s",
            world->rank, cake_size_text(r->fixed).s, cake_size_text(r->weights).s, me->gpu.number,
            world->host, cake_size_text(r->memory).s, lack, enough, where);
    }
    if (least > world->size) {
        int hosts = (least + world->local_size - 1) / world->local_size;
        snprintf(would, sizeof would, "%d such hosts with %d rank%s each would do (-np %d)", hosts,
                 world->local_size, world->local_size == 1 ? "" : "s", least);
    } else if (*where) {
        snprintf(would, sizeof would, "give it fewer layers, or a host with more memory");
    } else if (!least) {
        snprintf(would, sizeof would, "however many ranks there are, one of them needs %s",
                 cake_size_text(cake_partition_max_layer_bytes(&me->planning) + beside).s);
    }
    return cake_fail("planner",
                     "%sthe model does not fit: this rank needs %s (weights %s), "
                     "the %d rank%s of %s together %s, and %s of memory are free, %s too little; %s%s",
                     at.s, cake_size_text(r->fixed).s, cake_size_text(r->weights).s, world->local_size,
                     world->local_size == 1 ? "" : "s", world->host, cake_size_text(r->host).s,
                     cake_size_text(r->memory).s, lack, would, where);
}

/* What a topology file asks for and forbids. */
static cake_err judge_bound(const cake_rank *me, const cake_memory_use *r)
{
    const cake_topology_rank *said = &me->topology;
    int64_t weights = r->weights, bound = bound_of(me, r), asked = me->input.kv_memory, there = r->memory;
    if (me->input.gpu_kernels && !r->kernels->memory)
        return CAKE_OK;
    cake_topology_at at = {""};
    if (said->memory)
        at = cake_topology_io_at(&me->topology_file, said->memory_at);
    if (said->memory > there)
        return cake_fail("planner", "%smemory is %s for worker '%s', but %s are free there; give it less",
                         at.s, cake_size_text(bound).s, said->worker, cake_size_text(there).s);
    if (said->kv_memory > there)
        return cake_fail("planner", "%skv_memory is %s for worker '%s', but %s are free there; give it less",
                         cake_topology_io_at(&me->topology_file, said->kv_memory_at).s,
                         cake_size_text(asked).s, said->worker, cake_size_text(there).s);
    if (weights > bound)
        return cake_fail(
            "planner",
            "%smemory is %s for worker '%s', but the weights of its layers take %s; give it more, "
            "or fewer layers",
            at.s, cake_size_text(bound).s, said->worker, cake_size_text(weights).s);
    if (said->memory && asked > bound - weights)
        return cake_fail("planner",
                         "%smemory is %s for worker '%s', "
                         "but a KV cache of %s and weights of %s were asked for; "
                         "give it more, fewer layers or less kv_memory",
                         at.s, cake_size_text(bound).s, said->worker, cake_size_text(asked).s,
                         cake_size_text(weights).s);
    return CAKE_OK;
}

/* What a limit on this process (ulimit -v) leaves. */
static cake_err judge_mapping(const cake_rank *me, const cake_memory_use *r)
{
    int64_t asked = me->input.kv_memory > 0 ? me->input.kv_memory : 0, needs = r->fixed + asked;
    if (needs <= me->mapping)
        return CAKE_OK;
    return cake_fail("planner",
                     "ulimit -v leaves this rank %s to map, and weights (%s)%s and buffers take %s, "
                     "%s too little; raise the limit, or use more ranks",
                     cake_size_text(me->mapping).s, cake_size_text(r->weights).s,
                     asked ? ", the KV cache that was asked for" : "", cake_size_text(needs).s,
                     cake_size_text(needs - me->mapping).s);
}

/* What does not fit is said before anything is loaded. all_kv: bytes of pages and states of all ranks that
 * share the memory; speaks: of the ranks that lack memory one. */
static cake_err judge(const cake_comm *world, const cake_rank *me, const cake_memory_use *r, int64_t all_kv,
                      bool speaks)
{
    const cake_topology_rank *said = &me->topology;
    cake_topology_at of_worker = cake_topology_io_where(&me->topology_file, said), at = {""};
    const char *where = of_worker.s, *more = said->kv_memory ? "kv_memory"
                                             : r->kernels->memory && !me->input.kv_memory
                                                 ? "of the GPU, by fewer --gpu-layers,"
                                                 : "--kv-memory";
    int64_t left = r->memory - r->host, least = 0;
    cake_err err = judge_bound(me, r);
    if (err)
        return err;
    for (int group = 0; group < me->planning.shape.n_group; group++)
        least += r->page[group];
    if (left < 0 && left + r->tables > 0 && r->tables > r->memory / 4)
        return !speaks
                   ? CAKE_ERR_FATAL
                   : cake_fail("planner",
                               "the page tables of %d sequences of up to %d tokens take %s on %s, "
                               "where %s are left for them; use --context %d or less, or fewer --max-seqs",
                               me->planning.shape.n_lane * me->planning.shape.lane_seqs,
                               me->planning.max_positions, cake_size_text(r->tables).s, world->host,
                               cake_size_text(left + r->tables).s,
                               (int)(me->planning.max_positions *
                                     (0.5 * (double)(left + r->tables) / (double)r->tables)));
    if (left < 0)
        return speaks ? too_large(world, me, r, where) : CAKE_ERR_FATAL;
    if (!r->kernels->memory && (err = judge_mapping(me, r)))
        return err;
    if (said->kv_memory)
        at = cake_topology_io_at(&me->topology_file, said->kv_memory_at);
    if (r->states > 0 && r->states > r->cache)
        return cake_fail("planner",
                         "%sa KV cache of %s does not hold the recurrent states "
                         "of %d sequences (%s on this rank); use more %s, fewer --max-seqs or more ranks%s",
                         at.s, cake_size_text(r->cache > 0 ? r->cache : 0).s,
                         me->planning.shape.n_lane * me->planning.shape.lane_seqs,
                         cake_size_text(r->states).s, more, where);
    if (r->states + least > r->cache)
        return cake_fail("planner",
                         "%sa KV cache of %s does not hold one page of %d tokens (%s on this rank%s); "
                         "use more %s or more ranks%s",
                         at.s, cake_size_text(r->cache > 0 ? r->cache : 0).s, CAKE_PAGE,
                         cake_size_text(least).s, r->states ? ", beside the recurrent states" : "", more,
                         where);
    if (all_kv > left && (r->kernels->memory || world->local_rank == 0))
        return cake_fail(
            "planner",
            "%s of KV cache of %d rank%s do not fit into the %s that are left on %s; use less --kv-memory",
            cake_size_text(all_kv).s, r->n_rank, r->n_rank == 1 ? "" : "s", cake_size_text(left).s,
            world->host);
    return CAKE_OK;
}

/* That the ranks of this host read, once: replicas read the same. */
static int64_t bytes_of_files(const cake_comm *world, const cake_rank *me)
{
    cake_range range = {0, cake_model_config(me->input.model)->n_layer};
    cake_weight_set whole = {.range = &range, .n_range = 1, .embed = true, .head = true};
    cake_range *ranges = cake_alloc((size_t)me->planning.plan.n_hop + 1, sizeof *ranges);
    const cake_kernels *kernels[2];
    int64_t own = 0;
    for (int i = cake_offload_memories(&me->input, kernels); i-- > 0;) {
        cake_weight_set share =
            cake_offload_weight_set(&me->planning, &me->planning.plan, me->replica.rank, kernels[i], ranges);
        own += cake_model_bytes_in_files(me->input.model, &share);
    }
    free(ranges);
    int64_t all = cake_comm_node_sum(world, own), most = cake_model_bytes_in_files(me->input.model, &whole);
    return all < most ? all : most;
}

/* What is where, of a GPU that has not all; warn: since it is too small. */
static void tell_split(const cake_comm *world, const cake_rank *me, int own, bool warn)
{
    char all[32], there[32], here[32];
    int rank = me->replica.rank;
    snprintf(all, sizeof all, "%s", cake_size_text(me->gpu.memory).s);
    snprintf(
        there, sizeof there, "%s",
        cake_size_text(cake_offload_weights(&me->planning, &me->planning.plan, rank, me->input.gpu_kernels))
            .s);
    snprintf(
        here, sizeof here, "%s",
        cake_size_text(cake_offload_weights(&me->planning, &me->planning.plan, rank, me->input.kernels)).s);
    cake_log(warn ? CAKE_WARN : CAKE_INFO, "planner",
             "rank %d: %d of its %d layers are on GPU %d, which has %s (weights of %s); "
             "the others (%s) are on CPUs%s",
             world->rank, me->planning.gpu_layers, own, me->gpu.number, all, there, here,
             warn ? ", which is slow: more of them do not fit; use more GPUs" : "");
}

/* How many layers this rank's GPU gets: as many as leave a part of its memory to caches, if nobody said. */
static void settle_layers(const cake_comm *world, cake_rank *me)
{
    const int part = 16;
    int own = cake_offload_layers(&me->planning.plan, me->replica.rank);
    const bool chosen = me->input.max_gpu_layers < INT_MAX;
    me->planning.gpu_layers = me->input.max_gpu_layers < own ? me->input.max_gpu_layers : own;
    for (; me->input.gpu_kernels && !chosen && me->planning.gpu_layers > 0; me->planning.gpu_layers--) {
        cake_memory_use r = cake_memplan_measure(&me->planning, &me->planning.plan, me->replica.rank,
                                                 me->input.n_thread, me->input.gpu_kernels);
        int64_t weights =
            cake_offload_weights(&me->planning, &me->planning.plan, me->replica.rank, me->input.gpu_kernels);
        if (r.fixed + weights + me->gpu.memory / part <= me->gpu.memory)
            break;
    }
    if (me->input.gpu_kernels && me->planning.gpu_layers < own)
        tell_split(world, me, own, !chosen);
}

/* GPUs' memory first, then that of hosts. Of the ranks that lack memory the one that lacks most speaks. */
static cake_err judge_all(const cake_comm *world, const cake_rank *me, const cake_memory_use *all, int n,
                          const int64_t *kv)
{
    cake_err err = CAKE_OK;
    for (int host = !me->cluster.gpus; host < 2 && !err; host++) {
        int i = host ? n - 1 : 0;
        const cake_memory_use *r = host || me->input.gpu_kernels ? &all[i] : NULL; /* others have a GPU */
        int64_t all_kv = host ? cake_comm_node_sum(world, kv[i]) : kv[i];
        int64_t lacking = r && r->memory < r->host ? -r->fixed : 0,
                worst = cake_comm_allreduce_min(world, lacking);
        bool speaks =
            cake_comm_allreduce_min(world, lacking == worst ? world->rank : INT64_MAX) == world->rank;
        err = cake_comm_agree(world, r ? judge(world, me, r, all_kv, speaks) : CAKE_OK);
    }
    return err;
}

cake_err cake_memory_check(const cake_comm *world, cake_rank *me)
{
    cake_memory_use all[2], *first = &all[0];
    int64_t kv[2] = {0};
    first->kernels = cake_offload_first(&me->input);
    first->memory = me->input.gpu_kernels ? me->gpu.memory : me->machine.memory;
    int64_t bound = bound_of(me, first), most_memory = bound < first->memory ? bound : first->memory;
    me->planning.max_positions = (int)cake_comm_allreduce_min(
        world, cake_memplan_rank_max_positions(&me->planning, me->replica.rank, most_memory));
    cake_memplan_batch_limits(&me->planning, 0);
    settle_layers(world, me);
    int64_t files = bytes_of_files(world, me);

    int n = measure_all(world, me, all);
    int64_t most = me->planning.shape.lane_seqs;
    for (int i = 0; i < n; i++) {
        int64_t half = half_of(&all[i]);
        int64_t fit = all[i].states > half ? half / (all[i].states / me->planning.shape.lane_seqs) : most;
        most = fit < most ? fit : most;
    }
    most = cake_comm_allreduce_min(world, most);
    if (!me->input.max_seqs && most < me->planning.shape.lane_seqs) {
        cake_memplan_batch_limits(&me->planning, most > 0 ? (int)most : 1);
        n = measure_all(world, me, all);
    }
    bool crowded = false;
    for (int i = 0; i < n; i++)
        crowded = crowded || all[i].states > half_of(&all[i]);
    if (cake_comm_allreduce_min(world, !crowded) == 0) { /* all that there are must fit, others need not */
        me->planning.shape.n_saved = 0;
        n = measure_all(world, me, all);
    }
    count_pages(world, me, all, n);
    me->report.weights_bytes = 0;
    for (int i = 0; i < n; i++) {
        kv[i] = cache_bytes(&me->planning, &all[i]);
        me->report.weights_bytes += all[i].weights;
        cake_log(CAKE_DEBUG, "planner",
                 "%d lanes of %d sequences, waves of %d rows, %d KV pages, %s; weights %s, %s in all of %s; "
                 "%d threads",
                 me->planning.shape.n_lane, me->planning.shape.lane_seqs, me->planning.shape.max_tok,
                 me->planning.shape.n_page[0], cake_size_text(kv[i]).s, cake_size_text(all[i].weights).s,
                 cake_size_text(all[i].fixed + kv[i]).s, all[i].kernels->name, me->input.n_thread);
    }
    const cake_memory_use *host = &all[n - 1];
    me->drop = host->memory - host->host - cake_comm_node_sum(world, kv[n - 1]) < files;
    return judge_all(world, me, all, n, kv);
}
