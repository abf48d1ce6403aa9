/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the bytes that ranks take of a memory. Out: the bytes of its cache; or one message that says what does
 * not fit.
 * Invariant: nothing is communicated; of the world only names and numbers are read.
 */
#include "planner/memory_fit.h"

#include <stdio.h>

#include "base/size.h"
#include "planner/offload.h"
#include "planner/partition.h"

int64_t cake_memory_fit_limit(const cake_rank *me, const cake_memory_use *r)
{
    int64_t from_file = me->input.gpu_kernels && !r->kernels->memory ? 0 : me->topology_rank.memory;
    return from_file ? cake_size_bytes(from_file, r->memory) : INT64_MAX;
}

cake_memory_use cake_memory_fit_measure(const cake_rank *me, const cake_kernels *kernels)
{
    const cake_planning *p = &me->planning;
    int rank = me->replica.rank;
    cake_memory_use r = cake_memory_plan_measure(p, &p->plan, rank, me->input.n_thread, kernels);
    r.memory = kernels->memory ? me->gpu.memory : me->machine.memory;
    r.n_rank = 1;
    r.weights = cake_offload_weights(p, &p->plan, rank, kernels);
    r.fixed += r.weights;
    r.all_fixed = r.fixed;
    return r;
}

int64_t cake_memory_fit_cache(const cake_rank *me, const cake_memory_use *r)
{
    const bool on_gpu = r->kernels->memory;
    int64_t left = (r->memory - r->all_fixed) / r->n_rank, limit = cake_memory_fit_limit(me, r) - r->weights;
    if (!on_gpu && left > me->mapping - r->fixed)
        left = me->mapping - r->fixed;
    int64_t cache = cake_memory_plan_cache_bytes(me->input.kv_memory, left, on_gpu);
    return cache < limit ? cache : limit;
}

int64_t cake_memory_fit_page_bytes(const cake_planning *p, const cake_memory_use *r)
{
    int64_t bytes = 0;
    for (int group = 0; group < p->shape.n_kv_group; group++)
        bytes += r->kv.page[group];
    return bytes;
}

/* The weight of a memory when a requested cache size is divided. */
static double kv_share(const cake_planning *p, const cake_memory_use *r)
{
    return (double)(cake_memory_plan_states(p, &r->kv) + cake_memory_fit_page_bytes(p, r));
}

void cake_memory_fit_divide(const cake_rank *me, cake_memory_use *all, int n)
{
    double total = 0;
    for (int i = 0; i < n; i++)
        total += kv_share(&me->planning, &all[i]);
    for (int i = 0; i < n && n > 1 && me->input.kv_memory > 0 && total > 0; i++)
        all[i].cache = (int64_t)((double)all[i].cache * kv_share(&me->planning, &all[i]) / total);
}

/* What else makes weights and buffers fewer. */
static const char *without_mtp(const cake_plan_input *input)
{
    return cake_model_config(input->model)->mtp
               ? "; --speculate ngram does without the layer of multi-token prediction"
               : "";
}

cake_err cake_memory_fit_too_large(const cake_planning *p, const cake_memory_lack *lack)
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
    return cake_fail("planner", "%sthe model does not fit: %s, %s too little; %s%s%s", lack->at, lack->needs,
                     cake_size_text(lack->bytes).s, advice, without_mtp(p->input), lack->where);
}

/* On the rank that reports. where: the end of the message, "" without a topology file. */
static cake_err fail_too_large(const cake_comm *world, const cake_rank *me, const cake_memory_use *r,
                               const char *where)
{
    const bool on_gpu = r->kernels->memory;
    cake_topology_at at = {""};
    if (*where)
        at = cake_topology_at_text(&me->topology_file, me->topology_rank.at);
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
    return cake_memory_fit_too_large(&me->planning, &lack);
}

/* Limits and requests of the topology file. */
static cake_err check_topology_limits(const cake_rank *me, const cake_memory_use *r)
{
    const cake_topology_rank *from_file = &me->topology_rank;
    int64_t weights = r->weights, limit = cake_memory_fit_limit(me, r), requested = me->input.kv_memory,
            free_bytes = r->memory;
    if (me->input.gpu_kernels && !r->kernels->memory)
        return CAKE_OK;
    cake_topology_at at = {""};
    if (from_file->memory)
        at = cake_topology_at_text(&me->topology_file, from_file->memory_at);
    if (from_file->memory > free_bytes)
        return cake_fail("planner", "%smemory is %s for worker '%s', but %s are free there; give it less",
                         at.s, cake_size_text(limit).s, from_file->worker, cake_size_text(free_bytes).s);
    if (from_file->kv_memory > free_bytes)
        return cake_fail("planner", "%skv_memory is %s for worker '%s', but %s are free there; give it less",
                         cake_topology_at_text(&me->topology_file, from_file->kv_memory_at).s,
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
                     "%s too little; raise the limit, or use more ranks%s",
                     world->rank, world->host, cake_size_text(me->mapping).s, cake_size_text(r->weights).s,
                     requested ? ", the requested KV cache" : "", cake_size_text(needs).s,
                     cake_size_text(needs - me->mapping).s, without_mtp(&me->input));
}

cake_err cake_memory_fit_check(const cake_comm *world, const cake_rank *me, const cake_memory_use *r,
                               int64_t all_kv, bool reports)
{
    const cake_topology_rank *from_file = &me->topology_rank;
    cake_topology_at worker_text = cake_topology_at_worker(&me->topology_file, from_file), at = {""};
    const char *where = worker_text.s, *more = from_file->kv_memory ? "kv_memory"
                                               : r->kernels->memory && !me->input.kv_memory
                                                   ? "of the GPU (fewer --gpu-layers)"
                                                   : "--kv-memory";
    int64_t left = r->memory - r->all_fixed, states = cake_memory_plan_states(&me->planning, &r->kv),
            page_set = cake_memory_fit_page_bytes(&me->planning, r);
    cake_err err = check_topology_limits(me, r);
    if (err)
        return err;
    if (left < 0 && left + r->tables > 0 && r->tables > r->memory / 4)
        return !reports ? CAKE_ERR_FATAL
                        : cake_fail("planner",
                                    "the page tables of %d sequences of up to %d tokens take %s on %s, "
                                    "which has %s left; use --context %d or less, or fewer --max-seqs",
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
        at = cake_topology_at_text(&me->topology_file, from_file->kv_memory_at);
    if (states > 0 && states > r->cache)
        return cake_fail(
            "planner",
            "%sa KV cache of %s does not hold the recurrent states "
            "of %d sequences (%s on rank %d of %s); use more %s, fewer --max-seqs or more ranks%s",
            at.s, cake_size_text(r->cache > 0 ? r->cache : 0).s,
            me->planning.shape.n_lane * me->planning.shape.lane_seqs, cake_size_text(states).s, world->rank,
            world->host, more, where);
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
