/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the resources of the ranks that were started. Out: a plan for other ranks.
 * Invariant: bytes are counted by the same functions as for existing ranks.
 */
#include "planner/whatif.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "planner/memory_check.h"
#include "planner/memory_plan.h"
#include "planner/offload.h"
#include "planner/parallelism.h"
#include "planner/partition.h"
#include "planner/topology_io.h"

/* Extends rates, speeds and resources from n_here ranks to n by repeating them. */
static void repeat_ranks(cake_rank *me, int n_here, int n)
{
    int capacity = n > n_here ? n : n_here, *on_node = cake_alloc((size_t)capacity, sizeof *on_node);
    me->cluster.rate = cake_grow(me->cluster.rate, (size_t)capacity, sizeof *me->cluster.rate);
    me->cluster.speed = cake_grow(me->cluster.speed, (size_t)capacity, sizeof *me->cluster.speed);
    me->cluster.resources = cake_grow(me->cluster.resources, (size_t)capacity, sizeof *me->cluster.resources);
    for (int i = n_here; i < n; i++) {
        me->cluster.rate[i] = me->cluster.rate[i - n_here];
        me->cluster.speed[i] = me->cluster.speed[i - n_here];
        me->cluster.resources[i] = me->cluster.resources[i - n_here];
        me->cluster.resources[i].node += n_here;
    }
    me->cluster.n_rank = n;
    for (int i = 0; i < n; i++)
        on_node[me->cluster.resources[i].node]++;
    for (int i = 0; i < n; i++)
        me->cluster.resources[i].local_size = on_node[me->cluster.resources[i].node];
    free(on_node);
}

static cake_err fail_too_large(const cake_rank *me, int n_rank, int64_t bytes)
{
    const cake_rank_resources *resources = &me->cluster.resources[0];
    bool limited = resources->mapping < resources->memory; /* address space is not shared */
    const char *unit = me->cluster.gpus ? "GPU" : "rank";
    char needs[160];
    snprintf(needs, sizeof needs, "for %d %s%s %s are free on %s%s", n_rank, unit, n_rank == 1 ? "" : "s",
             cake_size_text(limited ? resources->mapping : resources->memory).s,
             me->cluster.gpus ? "each" : me->cluster.rate[0].host, limited ? " for each (ulimit -v)" : "");
    cake_memory_lack lack = {.at = "",
                             .needs = needs,
                             .where = "",
                             .layers_of = me->topology_file.path ? "some worker" : NULL,
                             .option = "--ranks",
                             .bytes = bytes,
                             .each = limited ? resources->mapping : resources->memory / resources->local_size,
                             .overhead =
                                 cake_memory_plan_overhead_bytes(&me->planning, 0, resources->n_thread),
                             .n_rank = n_rank,
                             .n_sharing = limited ? 1 : resources->local_size,
                             .n_pipeline = me->auto_replicas ? 1 : me->planning.n_replica};
    return cake_memory_check_too_large(&me->planning, &lack);
}

/* Plans all replicas: plans [n_replica], and waves and pages that fit on every rank. from_file: the file's
 * plan, or NULL. */
static cake_err plan_replicas(cake_rank *me, int n_rank, cake_plan *from_file, cake_plan *plans)
{
    int size = n_rank / me->planning.n_replica, pages[CAKE_MAX_KV_GROUPS], max_positions = INT_MAX;
    for (int r = 0; r < me->planning.n_replica; r++) {
        if (r && cake_partition_same(&me->planning, (r - 1) * size, r * size, size)) {
            plans[r] = cake_plan_copy(&plans[r - 1], r * size);
            continue;
        }
        int64_t lack = from_file ? cake_partition_adopt(&me->planning, from_file)
                                 : cake_partition_solve(&me->planning, r * size, size);
        if (lack)
            return fail_too_large(me, n_rank, lack);
        cake_partition_size_kv(&me->planning);
        if ((lack = cake_partition_kv_deficit(&me->planning)) > 0)
            return cake_fail("planner",
                             "a KV cache of %s on each rank is more than the layers leave free: "
                             "on some host by %s; use less --kv-memory, or more ranks",
                             cake_size_text(me->input.kv_memory).s, cake_size_text(lack).s);
        for (int group = 0; group < me->planning.shape.n_group; group++)
            pages[group] = r && pages[group] < me->planning.shape.n_page[group]
                               ? pages[group]
                               : me->planning.shape.n_page[group];
        max_positions =
            me->planning.max_positions < max_positions ? me->planning.max_positions : max_positions;
        plans[r] = me->planning.plan;
        me->planning.plan = (cake_plan){0};
    }
    memcpy(me->planning.shape.n_page, pages, sizeof pages);
    me->planning.max_positions = max_positions;
    return CAKE_OK;
}

/* The report that a rank would make. like: the existing rank that it copies; copy: 0 on that one's own host,
 * else the number of the further host like it. */
static cake_report_stage planned_report(const cake_rank *me, const cake_plan *plan, int rank,
                                        const cake_report_stage *like, int copy)
{
    cake_report_stage r = *like;
    const cake_kernels *kernels[2];
    if (copy)
        snprintf(r.host, sizeof r.host, "%.50s+%d", like->host, copy);
    r.weights_bytes = 0;
    r.gpu_layers = me->input.gpu_kernels ? cake_offload_layers(plan, rank) : 0;
    for (int i = cake_offload_memories(&me->input, kernels); i-- > 0;)
        r.weights_bytes += cake_offload_weights(&me->planning, plan, rank, kernels[i]);
    r.kv_bytes = 0;
    r.buffers_bytes = cake_memory_plan_buffer_bytes(&me->planning, plan, rank, r.threads);
    for (int i = 0; i < plan->n_hop; i++) {
        const cake_hop *hop = &plan->hop[i];
        if (hop->rank != rank)
            continue;
        cake_slice_shape shape = cake_memory_plan_slice(&me->planning, hop);
        r.kv_bytes += (int64_t)cake_slice_kv_bytes(cake_model_config(me->input.model), &shape);
    }
    return r;
}

/* On rank 0. reports [world->size]. */
static cake_err plan_whatif(int n, int64_t n_request, const cake_comm *world, cake_rank *me,
                            const cake_report_stage *reports, cake_whatif *out)
{
    const char *topology_path = me->topology_file.path;
    repeat_ranks(me, world->size, n);
    out->world = *world;
    out->world.size = n;
    if (me->auto_replicas)
        me->planning.n_replica = cake_parallelism_decide(&me->planning, n, n_request);
    if (topology_path && me->planning.n_replica > 1)
        return cake_fail_usage("--replicas %d, but %s has 1; leave --replicas out", me->planning.n_replica,
                               topology_path);
    cake_plan from_file = {0};
    cake_err err = topology_path
                       ? cake_topology_io_read_plan(&me->topology_file, n,
                                                    cake_model_config(me->input.model)->n_layer, &from_file)
                       : CAKE_OK;
    if (err)
        return err;
    int size = n / me->planning.n_replica;
    me->replica.size = size;
    out->plans = cake_alloc((size_t)me->planning.n_replica, sizeof *out->plans);
    out->ranks = cake_alloc((size_t)n, sizeof *out->ranks);
    err = plan_replicas(me, n, topology_path ? &from_file : NULL, out->plans);
    cake_plan_free(&from_file);
    for (int i = 0; i < n && !err; i++)
        out->ranks[i] =
            planned_report(me, &out->plans[i / size], i % size, &reports[i % world->size], i / world->size);
    return err;
}

cake_err cake_whatif_open(int n, int64_t n_request, const cake_comm *world, cake_rank *me, cake_whatif *out)
{
    *out = (cake_whatif){0};
    cake_report_stage *reports = world->rank ? NULL : cake_alloc((size_t)world->size, sizeof *reports);
    cake_comm_divide(world, 1, &me->replica);
    me->planning.rank = me->replica.rank;
    cake_comm_gather(world, &me->report, reports, sizeof *reports);
    cake_err err = world->rank ? CAKE_OK : plan_whatif(n, n_request, world, me, reports, out);
    free(reports);
    return cake_comm_agree(world, err);
}

void cake_whatif_close(cake_whatif *whatif, const cake_rank *me)
{
    for (int r = 0; whatif->plans && r < me->planning.n_replica; r++)
        cake_plan_free(&whatif->plans[r]);
    free(whatif->plans);
    free(whatif->ranks);
    *whatif = (cake_whatif){0};
}
