/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the resources of some ranks. Out: a plan for other ranks.
 * Invariant: bytes are counted by the same functions as for existing ranks.
 */
#include "planner/whatif_plan.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "planner/memory_fit.h"
#include "planner/memory_plan.h"
#include "planner/offload.h"
#include "planner/partition.h"

void cake_whatif_plan_repeat(cake_cluster *cluster, int n)
{
    int n_here = cluster->n_rank, capacity = n > n_here ? n : n_here;
    int *on_node = cake_alloc((size_t)capacity, sizeof *on_node);
    cluster->rate = cake_grow(cluster->rate, (size_t)capacity, sizeof *cluster->rate);
    cluster->speed = cake_grow(cluster->speed, (size_t)capacity, sizeof *cluster->speed);
    cluster->resources = cake_grow(cluster->resources, (size_t)capacity, sizeof *cluster->resources);
    for (int i = n_here; i < n; i++) {
        cluster->rate[i] = cluster->rate[i - n_here];
        cluster->speed[i] = cluster->speed[i - n_here];
        cluster->resources[i] = cluster->resources[i - n_here];
        cluster->resources[i].node += n_here;
    }
    cluster->n_rank = n;
    for (int i = 0; i < n; i++)
        on_node[cluster->resources[i].node]++;
    for (int i = 0; i < n; i++)
        cluster->resources[i].local_size = on_node[cluster->resources[i].node];
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
    return cake_memory_fit_too_large(&me->planning, &lack);
}

cake_err cake_whatif_plan_replicas(cake_rank *me, cake_plan *from_file, cake_plan *plans)
{
    int n_rank = me->cluster.n_rank, size = n_rank / me->planning.n_replica, pages[CAKE_MAX_KV_GROUPS],
        max_positions = INT_MAX;
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
        for (int group = 0; group < me->planning.shape.n_kv_group; group++)
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

cake_report_stage cake_whatif_plan_report(const cake_planning *p, const cake_plan *plan, int rank,
                                          const cake_report_stage *like, int copy)
{
    cake_report_stage r = *like;
    const cake_kernels *kernels[2];
    if (copy)
        snprintf(r.host, sizeof r.host, "%.50s+%d", like->host, copy);
    r.weights_bytes = 0;
    r.gpu_layers = p->input->gpu_kernels ? cake_offload_layers(plan, rank) : 0;
    for (int i = cake_offload_memories(p->input, kernels); i-- > 0;)
        r.weights_bytes += cake_offload_weights(p, plan, rank, kernels[i]);
    cake_offload_report(p, plan, rank, &r);
    r.buffers_bytes = cake_memory_plan_buffer_bytes(p, plan, rank, r.threads);
    r.kv_bytes = cake_memory_plan_rank_cache(p, plan, rank);
    return r;
}
