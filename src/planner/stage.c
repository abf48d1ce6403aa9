/* SPDX-License-Identifier: Apache-2.0
 *
 * In: options, the world. Out: a cake_stage, filled in three steps: open (model's headers, kernels,
 * machine), plan (who has which layers), load (weights, slices). cmd_run.c, cmd_plan.c, cmd_stage.c and bench
 * call.
 * Invariant: whatever a rank finds wrong is agreed on by all ranks before any of them goes on.
 */
#include "planner/stage.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/size.h"
#include "kernels/cuda/device.h"
#include "place/thread_limit.h"
#include "planner/bundle_plan.h"
#include "planner/calibrate.h"
#include "planner/consistency.h"
#include "planner/gpu_assign.h"
#include "planner/memory_plan.h"
#include "planner/offload.h"
#include "planner/parallelism.h"
#include "planner/partition.h"
#include "planner/replicas.h"
#include "planner/topology_io.h"
#include "planner/transport.h"

#define ROOMY ((int64_t)8 << 30) /* bytes of a GPU, of which buffers of some thousand rows are a small part */

static cake_dtype dtype_named(const char *name, cake_dtype otherwise)
{
    for (int i = 0; i < CAKE_N_KEPT; i++)
        if (!strcmp(name, cake_dtype_name((cake_dtype)i)))
            return (cake_dtype)i;
    return otherwise;
}

/* Rank 0 first, so that a file that is missing for all is complained of once. */
static cake_err open_model(const cake_options *o, const cake_comm *world, cake_stage *stage)
{
    cake_model_options options = {.config = o->config,
                                  .index = o->index,
                                  .dummy = o->dummy >= 0,
                                  .dummy_seed = o->dummy >= 0 ? (uint64_t)o->dummy : 0,
                                  .convert = strcmp(o->dtype, "auto")};
    options.dtype = dtype_named(o->dtype, CAKE_F32);
    cake_err err = CAKE_OK;
    if (world->rank == 0)
        err = cake_model_open(o->model, &options, &stage->model);
    err = cake_comm_agree(world, err);
    if (!err && world->rank > 0) {
        bool hushed = cake_log_hush(true); /* rank 0 has warned already */
        err = cake_model_open(o->model, &options, &stage->model);
        cake_log_hush(hushed);
    }
    return cake_comm_agree(world, err);
}

/* Files of the model are open; others follow at any time, on rank 0 a connection to each rank among them. */
static cake_err check_descriptors(const cake_comm *world)
{
    int64_t need = 32 + (world->rank ? 0 : world->size), left = cake_limits_files();
    cake_err err = CAKE_OK;
    if (left < need)
        err = cake_fail(
            "place",
            "only %lld more files can be opened, and %lld may be needed: raise the limit of open files "
            "(ulimit -n 4096)",
            (long long)(left > 0 ? left : 0), (long long)need);
    return cake_comm_agree(world, err);
}

cake_dtype cake_stage_kv_dtype(const char *option, cake_dtype model)
{
    return dtype_named(option, model == CAKE_F32 ? CAKE_F32 : CAKE_BF16);
}

/* The best table that every rank can run (for small models: that rounds no activations), or the one that was
 * asked for. */
static cake_err choose_kernels(const cake_options *o, const cake_comm *world, cake_stage *stage)
{
    int best = cake_kernels_best();
    int level = cake_model_parameters(stage->model) < CAKE_STAGE_LARGE ? cake_kernels_exact() : best;
    cake_err err = CAKE_OK;
    if (strcmp(o->isa, "auto")) {
        level = cake_kernels_level(o->isa);
        if (level < 0 || level > best)
            err = cake_fail("kernels", "%s %s: %s; the best here is %s", o->isa_from ? o->isa_from : "--isa",
                            o->isa,
                            level < 0 ? "this build does not have it" : "this processor does not have it",
                            cake_kernels_at(best)->name);
    }
    err = cake_comm_agree(world, err);
    if (!err)
        stage->kernels = cake_kernels_at((int)cake_comm_allreduce_min(world, level));
    return err;
}

static void get_ready(const cake_exec *exec, void *arg)
{
    (void)exec, (void)arg;
    cake_exec_scratch();
}

cake_err cake_stage_threads(const cake_comm *world, int n)
{
    cake_thread_limit *tried;
    int started = 1 + cake_thread_limit_open(n - 1, &tried);
    cake_err err = started < n
                       ? cake_fail("place",
                                   "%d threads cannot be started, only %d: "
                                   "the system's limits (ulimit -u, ulimit -v, "
                                   "pids.max of the cgroup) do not allow more; use --threads %d or fewer",
                                   n, started, started > 2 ? started / 2 : 1)
                       : CAKE_OK;
    err =
        cake_comm_agree(world, err); /* ranks may share a limit: nobody's threads go before all have tried */
    cake_thread_limit_close(tried);
    if (!err)
        cake_exec_run(n, get_ready, NULL); /* before memory is taken that their stacks need */
    return err;
}

/* What --mlock will lock has to be allowed, and ranks say so before they load. */
static cake_err check_lock(const cake_options *o, const cake_comm *world, const cake_stage *stage)
{
    int64_t weights = stage->report.weights_bytes, kv = stage->report.kv_bytes;
    int64_t allowed = o->mlock ? cake_machine_lockable() : INT64_MAX;
    cake_err err = CAKE_OK;
    if (weights + kv > allowed)
        err = cake_fail("place",
                        "--mlock: %s of memory would be locked (weights %s, "
                        "KV cache %s), but ulimit -l allows this process %s; "
                        "raise it (ulimit -l unlimited; under Slurm the node's own limit counts: "
                        "PropagateResourceLimitsExcept=MEMLOCK in slurm.conf or srun --propagate=NONE), "
                        "or use less --kv-memory or no --mlock",
                        cake_size_text(weights + kv).s, cake_size_text(weights).s, cake_size_text(kv).s,
                        cake_size_text(allowed).s);
    return cake_comm_agree(world, err);
}

static void describe(const cake_comm *world, cake_stage *stage)
{
    cake_report_stage *r = &stage->report;
    snprintf(r->host, sizeof r->host, "%s", world->host);
    snprintf(r->cpus, sizeof r->cpus, "%s", stage->machine.mask);
    snprintf(r->isa, sizeof r->isa, "%s", cake_offload_first(stage)->name);
    r->threads = stage->n_thread;
    r->threads_decode = stage->n_decode;
    r->gpu = stage->gpu;
    if (!stage->placement.crowded)
        return;
    r->crowd_ranks = stage->placement.crowd_ranks;
    r->crowd_threads = stage->placement.crowd_threads;
    r->crowd_cpus = stage->placement.crowd_cpus;
}

static void count_memory(cake_stage *stage)
{
    stage->report.buffers_bytes =
        cake_memplan_buffer_bytes(stage, &stage->plan, stage->replica.rank, stage->n_thread);
    stage->report.gpu_layers = stage->away ? stage->n_away : 0;
    if (stage->away && !stage->n_away) /* not one fits */
        snprintf(stage->report.isa, sizeof stage->report.isa, "%s", stage->kernels->name);
    for (int i = 0; i < stage->plan.n_hop; i++) {
        cake_slice_shape shape = cake_memplan_slice(stage, &stage->plan.hop[i]);
        if (stage->plan.hop[i].rank == stage->replica.rank)
            stage->report.kv_bytes += (int64_t)cake_slice_kv_bytes(cake_model_config(stage->model), &shape);
    }
}

/* What --topology says. */
static cake_err take_layout(const cake_options *o, const cake_comm *world, int n_layer, cake_stage *stage)
{
    cake_topology_read_result layout;
    cake_err err = cake_topology_io_read(o, world, n_layer, &layout);
    if (err)
        return err;
    stage->plan = layout.plan;
    stage->said = layout.mine;
    stage->hops = layout.hops;
    stage->n_replica = layout.n_replica;
    if (!o->replicas || o->replicas == layout.n_replica)
        return CAKE_OK;
    return world->rank
               ? CAKE_ERR_USAGE
               : cake_fail_usage("--replicas %lld, but %s has %d: "
                                 "its workers say which they are of with `replica`; leave --replicas away",
                                 (long long)o->replicas, o->topology, layout.n_replica);
}

/* How many there are, and where it was said, which layers each rank has. */
static cake_err find_replicas(const cake_options *o, const cake_comm *world, cake_stage *stage)
{
    int n_layer = cake_model_config(stage->model)->n_layer;
    const cake_bundle *bundle = cake_model_bundle(stage->model);
    cake_comm asked = *world;
    cake_err err = CAKE_OK;
    if (o->ranks)
        asked.size = (int)o->ranks;
    stage->planned = cake_parallelism_is_open(o, asked.size, stage->model);
    stage->n_replica = cake_replicas_asked(o);
    if (o->topology && !o->ranks) /* whatif.c has it else */
        err = take_layout(o, world, n_layer, stage);
    if (!err && !stage->planned)
        err = cake_replicas_check(o, &asked, stage->n_replica, n_layer);
    if (!err && bundle)
        err = cake_bundle_plan_take(o, world, bundle, &stage->plan);
    return err;
}

static cake_err settle_threads(const cake_options *o, const cake_comm *world, cake_stage *stage)
{
    stage->n_thread = stage->n_decode = stage->placement.n_thread;
    if (o->threads_decode && o->threads_decode < stage->n_thread)
        stage->n_decode = (int)o->threads_decode;
    cake_exec_oversubscribe(stage->placement.crowded);
    cake_exec_resident(stage->n_decode < stage->n_thread ? stage->n_thread : 0);
    return cake_stage_threads(world, stage->n_thread);
}

cake_err cake_stage_open(const cake_options *o, const cake_comm *world, cake_stage *stage)
{
    *stage = (cake_stage){0};
    cake_machine_read(&stage->machine);
    cake_err err = open_model(o, world, stage);
    if (!err)
        err = check_descriptors(world);
    if (!err)
        err = cake_consistency_model(o, world, stage->model, &stage->weights);
    if (err)
        return err;
    const cake_config *config = cake_model_config(stage->model);
    if (o->context > config->context)
        return world->rank
                   ? CAKE_ERR_USAGE
                   : cake_fail_usage("%s %lld: this model's context is %d tokens",
                                     strcmp(o->command, "bench") ? "--context" : "prompt and answer of",
                                     (long long)o->context, config->context);
    err = find_replicas(o, world, stage);
    if (err)
        return err;
    stage->context = o->context ? (int)o->context : config->context;
    stage->kv_dtype = cake_stage_kv_dtype(o->kv_dtype, cake_model_dtype(stage->model));
    stage->kv_memory = stage->said.kv_memory ? stage->said.kv_memory : o->kv_memory;
    err = cake_affinity_open(o, &stage->said, world, &stage->machine, &stage->placement);
    if (!err)
        err = cake_gpu_assign(o, &stage->said, world, &stage->placement, &stage->gpu, &stage->away,
                              &stage->gpus);
    if (err)
        return err;
    stage->big_gpus = stage->gpus && cake_comm_allreduce_min(world, stage->gpu.used ? stage->gpu.memory
                                                                                    : INT64_MAX) >= ROOMY;
    stage->direct = stage->gpus && (strcmp(o->link, "mpi") || cake_gpu_transport_mpi_can());
    stage->n_away = stage->most_away = o->gpu_layers >= 0 ? (int)o->gpu_layers : INT_MAX;
    if (stage->machine.memory_said && !strcmp(o->command, "plan"))
        stage->machine.memory = stage->machine.memory_said;
    err = settle_threads(o, world, stage);
    stage->mapping = stage->gpu.used ? INT64_MAX : cake_machine_mapping();
    if (!err)
        err = choose_kernels(o, world, stage);
    if (err)
        return err;
    describe(world, stage);
    err = cake_calibrate(o, world, stage);
    if (!err)
        cake_partition_open(world, stage);
    return err;
}

cake_err cake_stage_plan(const cake_options *o, const cake_comm *world, cake_stage *stage)
{
    cake_err err = cake_stage_open(o, world, stage);
    if (err)
        return err;
    if (stage->planned)
        stage->n_replica = cake_parallelism_choose(o, world, stage);
    cake_comm_divide(world, stage->n_replica, &stage->replica);
    if (!o->topology && !cake_model_bundle(stage->model))
        cake_partition_agree(o, world, stage);
    stage->plan.first = world->rank - stage->replica.rank;
    err = cake_memplan_solve(o, world, stage);
    if (err)
        return err;
    count_memory(stage);
    cake_offload_describe(world, stage, &stage->isa);
    if (stage->gpus && strcmp(o->isa, "auto") && !world->rank && !strstr(stage->isa.data, o->isa))
        cake_log(CAKE_WARN, "place", "--isa %s: nothing is computed on CPUs, so it is not used", o->isa);
    return check_lock(o, world, stage);
}

/* Who listens between layers, and is not to be told twice of the same place. */
typedef struct listener {
    void (*between)(void *arg, bool layer);
    void *arg;
    bool told;
} listener;

static void pass_on(void *arg, bool layer)
{
    listener *l = arg;
    if (!layer || !l->told)
        l->between(l->arg, layer);
    l->told = l->told && !layer;
}

static cake_err forward(void *self, cake_wave *wave, cake_wave_buffers way,
                        void (*between)(void *arg, bool layer), void *arg)
{
    const cake_hop_slices *s = self;
    cake_err err = CAKE_OK;
    for (int i = 0; i < s->n && !err; i++) {
        listener l = {between, arg,
                      i > 0}; /* behind the last layer of one is before the first of the other */
        cake_wave_buffers part = {i == 0 ? way.from : NULL, i == s->n - 1 ? way.to : NULL};
        err = cake_slice_forward(s->slice[i], wave, part, pass_on, &l);
    }
    return err;
}

/* Weights, into each memory of this rank. */
static cake_err load(const cake_options *o, cake_stage *stage)
{
    cake_range *ranges = cake_alloc((size_t)stage->plan.n_hop + 1, sizeof *ranges);
    cake_loading how = {.threads = stage->n_thread, .mapped = !strcmp(o->load, "mmap"), .drop = stage->drop};
    const cake_kernels *kernels[2];
    cake_err err = CAKE_OK;
    for (int i = cake_offload_memories(stage, kernels); i-- > 0 && !err;) {
        cake_weight_set share =
            cake_offload_weight_set(stage, &stage->plan, stage->replica.rank, kernels[i], ranges);
        if (share.n_range || share.embed || share.head)
            err = cake_model_load(stage->model, &share, kernels[i], &how);
        if (!err && kernels[i]->memory)
            err = kernels[i]->memory->check();
    }
    free(ranges);
    return err;
}

/* The slices of the next hop of this rank. part: its first; returns how many parts it has. */
static int open_stretch(const cake_options *o, cake_stage *stage, const cake_hop *hop,
                        const cake_hop_part *part, cake_err *err)
{
    cake_hop_slices *s = &stage->slices[stage->n_slices];
    for (int count = 0; count < hop->count && !*err; count += part[s->n - 1].hop.count) {
        cake_slice_shape shape = cake_memplan_slice(stage, &part[s->n].hop);
        *err = cake_slice_open(stage->model, part[s->n].kernels, &shape, &s->slice[s->n]);
        if (!*err && o->mlock && !part[s->n].kernels->memory)
            *err = cake_slice_lock(s->slice[s->n]);
        s->n++;
    }
    stage->works[stage->n_slices++] = (cake_hop_work){s, forward};
    return s->n;
}

cake_err cake_stage_load(const cake_options *o, const cake_comm *world, cake_stage *stage)
{
    double start = cake_clock_now();
    cake_err err = cake_transport_plan_negotiate(o, world, stage);
    if (err)
        return err;
    cake_affinity_pin(&stage->placement);
    err = load(o, stage);
    cake_affinity_pin(&stage->placement); /* not all threads load where there are very many */
    if (!err && o->mlock)
        err = cake_model_lock(stage->model);
    size_t n_hop = (size_t)stage->plan.n_hop;
    stage->slices = cake_alloc(n_hop, sizeof *stage->slices);
    stage->works = cake_alloc(n_hop, sizeof *stage->works);
    cake_hop_part *part = cake_alloc(n_hop + 1, sizeof *part);
    cake_offload_of(stage, &stage->plan, stage->replica.rank, part);
    for (int i = 0, n = 0; i < stage->plan.n_hop && !err; i++)
        if (stage->plan.hop[i].rank == stage->replica.rank)
            n += open_stretch(o, stage, &stage->plan.hop[i], part + n, &err);
    free(part);
    stage->report.read_bytes = cake_model_bytes_read(stage->model);
    stage->report.load_s = cake_clock_now() - start;
    err = cake_comm_agree(world, err);
    if (!err)
        cake_transport_plan_open(world, stage);
    return err;
}

void cake_stage_close(cake_stage *stage)
{
    for (int i = 0; i < stage->n_slices; i++)
        for (int j = 0; j < stage->slices[i].n; j++)
            cake_slice_close(stage->slices[i].slice[j]);
    cake_transport_plan_close(stage);
    cake_buf_free(&stage->isa);
    free(stage->slices);
    free(stage->works);
    cake_model_close(stage->model);
    cake_plan_free(&stage->plan);
    cake_affinity_close(&stage->placement);
    cake_calibration_free(stage);
    cake_partition_close(stage);
    cake_comm_free(&stage->replica);
    if (stage->away)
        cake_device_close();
    *stage = (cake_stage){0};
}
