/* SPDX-License-Identifier: Apache-2.0
 *
 * In: what is known of the ranks that were started. Out: a plan for others. cmd_plan.c calls.
 * Invariant: bytes are counted by the functions that count them for ranks that are there.
 */
#include "planner/whatif.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "planner/memory_plan.h"
#include "planner/offload.h"
#include "planner/parallelism.h"
#include "planner/partition.h"
#include "planner/topology_io.h"

/* Rates, speeds and resources of n ranks, after those of n_here. */
static void multiply(cake_stage *stage, int n_here, int n)
{
    int most = n > n_here ? n : n_here, *held = cake_alloc((size_t)most, sizeof *held);
    stage->rate = cake_grow(stage->rate, (size_t)most, sizeof *stage->rate);
    stage->speed = cake_grow(stage->speed, (size_t)most, sizeof *stage->speed);
    stage->resources = cake_grow(stage->resources, (size_t)most, sizeof *stage->resources);
    for (int i = n_here; i < n; i++) {
        stage->rate[i] = stage->rate[i - n_here];
        stage->speed[i] = stage->speed[i - n_here];
        stage->resources[i] = stage->resources[i - n_here];
        stage->resources[i].host += n_here;
    }
    stage->n_resources = n;
    for (int i = 0; i < n; i++)
        held[stage->resources[i].host]++;
    for (int i = 0; i < n; i++)
        stage->resources[i].local_size = held[stage->resources[i].host];
    free(held);
}

static const char *kind_of(const cake_stage *stage, int n)
{
    return stage->gpus ? n == 1 ? "GPU" : "GPUs" : n == 1 ? "rank" : "ranks";
}

static cake_err too_large(const cake_options *o, const cake_stage *stage, int n_rank, int64_t lack)
{
    const cake_rank_resources *resources = &stage->resources[0];
    bool limited = resources->mapping < resources->memory; /* what a rank may map it does not share */
    int64_t each = limited ? resources->mapping : resources->memory / resources->local_size;
    int64_t beside = cake_memplan_overhead_bytes(stage, 0, resources->n_thread);
    int least = cake_partition_min_ranks(stage, each - beside, limited ? 1 : resources->local_size) *
                (stage->planned ? 1 : stage->n_replica);
    char missing[32], would[96] = "";
    snprintf(missing, sizeof missing, "%s", cake_size_text(lack));
    if (o->topology)
        snprintf(would, sizeof would, "; give some worker fewer layers");
    else if (least && least != n_rank)
        snprintf(would, sizeof would, "; %d such %s would do (--ranks %d)", least, kind_of(stage, least),
                 least);
    else if (!least)
        snprintf(would, sizeof would, "; however many there are, one of them needs %s",
                 cake_size_text(cake_partition_max_layer_bytes(stage) + beside));
    return cake_fail(
        "place", "the model does not fit into the memory of %d %s: %s are free on %s%s, %s too little%s",
        n_rank, kind_of(stage, n_rank), cake_size_text(limited ? each : resources->memory),
        stage->gpus ? "each" : stage->rate[0].host, limited ? " for each (ulimit -v)" : "", missing, would);
}

/* Plans [n_replica] for all, with waves and pages that all have room for. said: what a file has, or NULL. */
static cake_err cut_all(const cake_options *o, cake_stage *stage, int n_rank, cake_plan *said,
                        cake_plan *plans)
{
    int size = n_rank / stage->n_replica, pages[CAKE_MAX_KV_GROUPS], reach = INT_MAX;
    for (int r = 0; r < stage->n_replica; r++) {
        if (r && cake_partition_same(stage, (r - 1) * size, r * size, size)) {
            plans[r] = cake_plan_copy(&plans[r - 1], r * size);
            continue;
        }
        int64_t lack =
            said ? cake_partition_adopt(o, stage, said) : cake_partition_solve(o, stage, r * size, size);
        if (lack)
            return too_large(o, stage, n_rank, lack);
        cake_partition_size_kv(o, stage);
        if ((lack = cake_partition_kv_deficit(stage)) > 0)
            return cake_fail("place",
                             "a KV cache of %s on each rank is more than is left beside the layers: "
                             "on some host by %s; use less --kv-memory, or more ranks",
                             cake_size_text(stage->kv_memory), cake_size_text(lack));
        for (int group = 0; group < stage->shape.n_group; group++)
            pages[group] =
                r && pages[group] < stage->shape.n_page[group] ? pages[group] : stage->shape.n_page[group];
        reach = stage->reach < reach ? stage->reach : reach;
        plans[r] = stage->plan;
        stage->plan = (cake_plan){0};
    }
    memcpy(stage->shape.n_page, pages, sizeof pages);
    stage->reach = reach;
    return CAKE_OK;
}

/* What a rank would say of itself. like: the rank that it resembles, which is there; copy: 0 on that one's
 * own host, else which of the further hosts like it. */
static cake_report_stage report_of(const cake_stage *stage, const cake_plan *plan, int rank,
                                   const cake_report_stage *like, int copy)
{
    cake_report_stage r = *like;
    const cake_kernels *kernels[2];
    if (copy)
        snprintf(r.host, sizeof r.host, "%.50s+%d", like->host, copy);
    r.weights_bytes = 0;
    r.gpu_layers = stage->away ? cake_offload_layers(plan, rank) : 0;
    for (int i = cake_offload_memories(stage, kernels); i-- > 0;)
        r.weights_bytes += cake_offload_weights(stage, plan, rank, kernels[i]);
    r.kv_bytes = 0;
    r.buffers_bytes = cake_memplan_buffer_bytes(stage, plan, rank, r.threads);
    for (int i = 0; i < plan->n_hop; i++) {
        const cake_hop *hop = &plan->hop[i];
        if (hop->rank != rank)
            continue;
        cake_slice_shape shape = cake_memplan_slice(stage, hop);
        r.kv_bytes += (int64_t)cake_slice_kv_bytes(cake_model_config(stage->model), &shape);
    }
    return r;
}

/* On rank 0. here [world->size]. */
static cake_err pretend(const cake_options *o, const cake_comm *world, cake_stage *stage,
                        const cake_report_stage *here, cake_whatif *out)
{
    int n = (int)o->ranks;
    multiply(stage, world->size, n);
    out->world = *world;
    out->world.size = n;
    if (stage->planned)
        stage->n_replica = cake_parallelism_decide(o, stage, n);
    if (o->topology && o->replicas > 1)
        return cake_fail_usage("--replicas %lld, but %s has 1; leave --replicas away", (long long)o->replicas,
                               o->topology);
    cake_plan said = {0};
    cake_err err = o->topology
                       ? cake_topology_io_foresee(o, n, cake_model_config(stage->model)->n_layer, &said)
                       : CAKE_OK;
    if (err)
        return err;
    int size = n / stage->n_replica;
    stage->replica.size = size;
    out->plans = cake_alloc((size_t)stage->n_replica, sizeof *out->plans);
    out->ranks = cake_alloc((size_t)n, sizeof *out->ranks);
    err = cut_all(o, stage, n, o->topology ? &said : NULL, out->plans);
    cake_plan_free(&said);
    for (int i = 0; i < n && !err; i++)
        out->ranks[i] =
            report_of(stage, &out->plans[i / size], i % size, &here[i % world->size], i / world->size);
    return err;
}

cake_err cake_whatif_open(const cake_options *o, const cake_comm *world, cake_stage *stage, cake_whatif *out)
{
    *out = (cake_whatif){0};
    cake_report_stage *here = world->rank ? NULL : cake_alloc((size_t)world->size, sizeof *here);
    cake_comm_divide(world, 1, &stage->replica);
    cake_comm_gather(world, &stage->report, here, sizeof *here);
    cake_err err = world->rank ? CAKE_OK : pretend(o, world, stage, here, out);
    free(here);
    return cake_comm_agree(world, err);
}

void cake_whatif_close(cake_whatif *whatif, const cake_stage *stage)
{
    for (int r = 0; whatif->plans && r < stage->n_replica; r++)
        cake_plan_free(&whatif->plans[r]);
    free(whatif->plans);
    free(whatif->ranks);
    *whatif = (cake_whatif){0};
}
