/* SPDX-License-Identifier: Apache-2.0
 *
 * In: options, the world. Out: a cake_rank, filled in three steps: open (headers of the model, kernels,
 * machines of all ranks), plan (which rank has which layers), load (weights, slices).
 * Invariant: all ranks agree on an error before any of them continues.
 */
#include "planner/rank.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/size.h"
#include "dispatch/client.h"
#include "dispatch/dispatcher.h"
#include "kernels/device.h"
#include "placement/thread_limit.h"
#include "planner/bundle_plan.h"
#include "planner/calibrate.h"
#include "planner/cluster.h"
#include "planner/consistency.h"
#include "planner/gpu_assign.h"
#include "planner/memory_check.h"
#include "planner/memory_plan.h"
#include "planner/offload.h"
#include "planner/parallelism.h"
#include "planner/partition.h"
#include "planner/topology_io.h"
#include "planner/transport.h"
#include "slice/layer.h"

#define BIG_GPU ((int64_t)8 << 30) /* bytes; buffers of some thousand rows are a small part of such a GPU */

/* Rank 0 first, so that a file missing for all is reported once. */
static cake_err open_model(const cake_rank_options *o, const cake_comm *world, cake_rank *me)
{
    cake_err err = CAKE_OK;
    if (world->rank == 0)
        err = cake_model_open(o->model, &o->open, &me->model);
    err = cake_comm_agree(world, err);
    if (!err && world->rank > 0) {
        bool was_hushed = cake_log_hush(true); /* rank 0 has warned already */
        err = cake_model_open(o->model, &o->open, &me->model);
        cake_log_hush(was_hushed);
    }
    return cake_comm_agree(world, err);
}

/* Checks that enough file descriptors are left: on rank 0, MPI may open a connection to each rank. */
static cake_err check_descriptors(const cake_comm *world)
{
    int64_t need = 32 + (world->rank ? 0 : world->size), left = cake_limits_files();
    cake_err err = CAKE_OK;
    if (left < need)
        err = cake_fail(
            "planner",
            "only %lld more files can be opened, but %lld may be needed: raise the limit of open files "
            "(ulimit -n 4096)",
            (long long)(left > 0 ? left : 0), (long long)need);
    return cake_comm_agree(world, err);
}

cake_dtype cake_rank_kv_dtype(const char *option, cake_dtype model)
{
    for (int i = 0; i < CAKE_N_KEPT; i++)
        if (!strcmp(option, cake_dtype_name((cake_dtype)i)))
            return (cake_dtype)i;
    return model == CAKE_F32 ? CAKE_F32 : CAKE_BF16;
}

const cake_kernels *cake_rank_kernels(const cake_comm *world, int64_t levels)
{
    int64_t all = cake_comm_allreduce_and(world, levels);
    int level = 0;
    while (all >>= 1)
        level++;
    return cake_kernels_at(level);
}

/* Chooses --isa, or the best kernels that every rank can run; for small models, the best that round no
 * activations. */
static cake_err choose_kernels(const cake_rank_options *o, const cake_comm *world, cake_rank *me)
{
    int best = cake_kernels_best();
    bool large = cake_model_parameters(me->input.model) >= CAKE_MODEL_LARGE;
    int64_t levels = cake_kernels_up_to(large ? best : cake_kernels_exact());
    cake_err err = CAKE_OK;
    if (strcmp(o->isa, "auto")) {
        int level = cake_kernels_level(o->isa);
        levels = (int64_t)1 << (level < 0 ? 0 : level);
        if (!cake_kernels_at(level))
            err = cake_fail("planner", "%s%s--isa %s: this %s does not have it; the best here is %s%s",
                            o->isa_from ? o->isa_from : "", o->isa_from ? " was begun with " : "", o->isa,
                            level < 0 ? "build" : "processor", cake_kernels_at(best)->name,
                            o->isa_from ? "; resume on a node that has it, or begin anew with --force" : "");
    }
    err = cake_comm_agree(world, err);
    if (!err)
        me->input.kernels = cake_rank_kernels(world, levels);
    return err;
}

static void allocate_scratch(const cake_exec *exec, void *arg)
{
    (void)exec, (void)arg;
    cake_exec_scratch();
}

cake_err cake_rank_threads(const cake_comm *world, int n)
{
    cake_thread_limit *tried;
    int started = 1 + cake_thread_limit_open(n - 1, &tried);
    cake_err err = started < n
                       ? cake_fail("planner",
                                   "%d threads cannot be started, only %d: "
                                   "the system's limits (ulimit -u, ulimit -v, "
                                   "pids.max of the cgroup) do not allow more; use --threads %d or fewer",
                                   n, started, started > 2 ? started / 2 : 1)
                       : CAKE_OK;
    err = cake_comm_agree(world, err); /* ranks may share a limit: all try before any releases its threads */
    cake_thread_limit_close(tried);
    if (!err)
        cake_exec_run(n, allocate_scratch, NULL); /* before others take the memory that stacks need */
    return err;
}

/* Checks the limit of locked memory before anything is loaded. */
static cake_err check_lock(const cake_rank_options *o, const cake_comm *world, const cake_rank *me)
{
    int64_t weights = me->report.weights_bytes, kv = me->report.kv_bytes;
    int64_t allowed = o->lock ? cake_machine_lockable() : INT64_MAX;
    cake_err err = CAKE_OK;
    if (weights + kv > allowed)
        err = cake_fail("planner",
                        "--mlock: %s of memory would be locked (weights %s, "
                        "KV cache %s), but ulimit -l allows this process %s; "
                        "raise it (ulimit -l unlimited; under Slurm the node's own limit counts: "
                        "PropagateResourceLimitsExcept=MEMLOCK in slurm.conf or srun --propagate=NONE), "
                        "or use less --kv-memory or no --mlock",
                        cake_size_text(weights + kv).s, cake_size_text(weights).s, cake_size_text(kv).s,
                        cake_size_text(allowed).s);
    return cake_comm_agree(world, err);
}

static void report_machine(const cake_comm *world, cake_rank *me)
{
    cake_report_stage *r = &me->report;
    snprintf(r->host, sizeof r->host, "%s", world->host);
    snprintf(r->cpus, sizeof r->cpus, "%s", me->machine.mask);
    snprintf(r->isa, sizeof r->isa, "%s", cake_offload_first(&me->input)->name);
    r->threads = me->input.n_thread;
    r->threads_decode = me->input.n_decode;
    r->gpu = me->gpu;
    if (!me->affinity.oversubscribed)
        return;
    r->sharing_ranks = me->affinity.sharing_ranks;
    r->sharing_threads = me->affinity.sharing_threads;
    r->shared_cpus = me->affinity.shared_cpus;
}

static void report_memory(cake_rank *me)
{
    me->report.buffers_bytes = cake_memory_plan_buffer_bytes(&me->planning, &me->planning.plan,
                                                             me->replica.rank, me->input.n_thread);
    me->report.gpu_layers = me->input.gpu_kernels ? me->planning.gpu_layers : 0;
    if (me->input.gpu_kernels && !me->planning.gpu_layers) /* no layer fits */
        snprintf(me->report.isa, sizeof me->report.isa, "%s", me->input.kernels->name);
    cake_offload_report(&me->planning, &me->planning.plan, me->replica.rank, &me->report);
    me->report.kv_bytes = cake_memory_plan_rank_cache(&me->planning, &me->planning.plan, me->replica.rank);
}

/* Applies --topology. */
static cake_err apply_topology(const cake_rank_options *o, const cake_comm *world, int n_layer, cake_rank *me)
{
    cake_topology_read_result file;
    cake_err err = cake_topology_io_read(&o->topology_file, world, n_layer, &file);
    if (err)
        return err;
    me->planning.plan = file.plan;
    me->topology_rank = file.mine;
    me->planning.max_hops = file.max_hops;
    me->planning.n_replica = file.n_replica;
    if (!o->n_replica || o->n_replica == file.n_replica)
        return CAKE_OK;
    return world->rank ? CAKE_ERR_USAGE
                       : cake_fail_usage("--replicas %d, but %s has %d: "
                                         "its workers name theirs with `replica`; leave --replicas out",
                                         o->n_replica, o->topology_file.path, file.n_replica);
}

/* Whether the planner decides the number of replicas: neither --replicas nor --topology is given, and the
 * model is large enough for rates to be measured. The same on all ranks. */
static bool replicas_undecided(const cake_rank_options *o, int n_rank, const cake_model *model)
{
    return !o->n_replica && !o->topology_file.path && o->purpose != CAKE_PURPOSE_BENCH && n_rank > 1 &&
           cake_model_parameters(model) >= CAKE_MODEL_LARGE;
}

/* Sets the number of replicas, and the plan if a topology file or a bundle has one. */
static cake_err find_replicas(const cake_rank_options *o, const cake_comm *world, cake_rank *me)
{
    int n_layer = cake_model_config(me->input.model)->n_layer;
    const cake_bundle *bundle = cake_model_bundle(me->input.model);
    int n_rank = o->n_rank ? o->n_rank : world->size;
    cake_err err = CAKE_OK;
    me->auto_replicas = replicas_undecided(o, n_rank, me->input.model);
    me->planning.n_replica = o->n_replica ? o->n_replica : 1;
    if (o->topology_file.path && !o->n_rank) /* with --ranks whatif.c reads it */
        err = apply_topology(o, world, n_layer, me);
    if (!err && !me->auto_replicas)
        err = cake_parallelism_check(n_rank, me->planning.n_replica, n_layer, !world->rank,
                                     o->n_rank ? "use --ranks" : "start it with -np",
                                     o->purpose != CAKE_PURPOSE_BENCH);
    if (!err && bundle)
        err = cake_bundle_plan_take(o->topology_file.path, o->staged, world, bundle, &me->planning.plan);
    return err;
}

static cake_err choose_threads(const cake_rank_options *o, const cake_comm *world, cake_rank *me)
{
    me->input.n_thread = me->input.n_decode = me->affinity.n_thread;
    if (o->threads_decode && o->threads_decode < me->input.n_thread)
        me->input.n_decode = o->threads_decode;
    cake_exec_oversubscribe(me->affinity.oversubscribed);
    cake_exec_resident(me->input.n_decode < me->input.n_thread ? me->input.n_thread : 0);
    return cake_rank_threads(world, me->input.n_thread);
}

/* Why nothing can be computed on GPUs; NULL: it can. */
static const char *why_no_gpu(const cake_rank *me)
{
    const cake_config *config = cake_model_config(me->input.model);
    const char *layers = cake_layers_no_gpu(config);
    return layers ? layers
           : cake_model_quantized(me->input.model)
               ? "there are no GPU kernels for quantised weights yet; --dtype bf16 converts them"
           : me->input.kv_dtype == CAKE_I8
               ? "there are no GPU kernels for a KV cache in int8 yet; --kv-dtype bf16 or auto has them"
           : config->mtp ? "--speculate mtp computes on CPUs only; --speculate ngram drafts on GPUs, too"
                         : NULL;
}

/* Options that this model cannot have together. */
static cake_err check_model_options(const cake_rank_options *o, const cake_comm *world, const cake_rank *me)
{
    if (o->codes && !cake_model_has_codes(me->input.model))
        return cake_fail_usage(
            "--activations int8: no weights of this model are integer codes; --dtype int8 quantises "
            "weights and activations");
    if (!cake_model_config(me->input.model)->mtp || !o->weights_memory)
        return CAKE_OK;
    return world->rank ? CAKE_ERR_USAGE
                       : cake_fail_usage("--speculate mtp keeps all weights in memory: leave "
                                         "--weights-memory out, or use --speculate ngram");
}

cake_err cake_rank_open(const cake_rank_options *o, const cake_comm *world, cake_rank *me)
{
    *me = (cake_rank){.topology_file = o->topology_file};
    me->planning.cluster = &me->cluster;
    me->planning.input = &me->input;
    me->input.max_seqs = (int)o->max_seqs;
    me->input.speculate = o->speculate;
    me->input.chunk = (int)o->chunk;
    me->input.weights_memory = o->weights_memory;
    me->input.client_bytes = (int64_t)cake_dispatch_client_bytes();
    me->input.dispatch_bytes = (int64_t)cake_dispatcher_bytes(2);
    cake_machine_open(&me->machine);
    cake_err err = open_model(o, world, me);
    me->input.model = me->model;
    if (!err)
        err = check_descriptors(world);
    if (!err)
        err = cake_consistency_model(o->open.config ? NULL : o->model, o->purpose == CAKE_PURPOSE_RUN, world,
                                     me->model, &me->weights);
    if (err)
        return err;
    const cake_config *config = cake_model_config(me->input.model);
    if (o->context > config->context)
        return world->rank
                   ? CAKE_ERR_USAGE
                   : cake_fail_usage("%s %lld: this model's context is %d token%s",
                                     o->purpose != CAKE_PURPOSE_BENCH ? "--context" : "prompt and answer of",
                                     (long long)o->context, config->context, cake_plural(config->context));
    err = find_replicas(o, world, me);
    if (!err)
        err = check_model_options(o, world, me);
    if (err)
        return err;
    me->input.context = o->context ? (int)o->context : config->context;
    me->input.kv_dtype = cake_rank_kv_dtype(o->kv_dtype, cake_model_dtype(me->input.model));
    me->input.kv_memory = me->topology_rank.kv_memory ? me->topology_rank.kv_memory : o->kv_memory;
    cake_gpu_options gpu = o->gpu;
    gpu.no_gpu = why_no_gpu(me);
    err = cake_affinity_open(&o->affinity, &o->topology_file, &me->topology_rank, world, &me->machine,
                             &me->affinity);
    if (!err)
        err = cake_gpu_assign(world,
                              &(cake_gpu_request){&gpu, &o->topology_file, &me->topology_rank, &me->affinity},
                              &me->gpu, &me->input.gpu_kernels, &me->cluster.gpus);
    if (err)
        return err;
    me->cluster.big_gpus =
        me->cluster.gpus &&
        cake_comm_allreduce_min(world, me->gpu.used ? me->gpu.memory : INT64_MAX) >= BIG_GPU;
    me->input.gpu_direct = me->cluster.gpus && (strcmp(o->link, "mpi") || cake_gpu_transport_mpi_can());
    me->planning.gpu_layers = me->input.max_gpu_layers = o->gpu.layers >= 0 ? (int)o->gpu.layers : INT_MAX;
    if (me->machine.memory_modelled && o->purpose == CAKE_PURPOSE_PLAN)
        me->machine.memory = me->machine.memory_modelled;
    err = choose_threads(o, world, me);
    me->mapping = me->gpu.used ? INT64_MAX : cake_machine_mapping();
    if (!err)
        err = choose_kernels(o, world, me);
    if (err)
        return err;
    report_machine(world, me);
    err = cake_calibrate(&(cake_calibrate_options){.rates = o->rates,
                                                   .keep = o->keep_rates,
                                                   .threads = o->threads,
                                                   .plan = o->purpose == CAKE_PURPOSE_PLAN,
                                                   .report = o->report,
                                                   .settle = o->settle,
                                                   .arg = o->settle_arg},
                         world, me);
    if (!err) {
        cake_cluster_gather(world, &me->machine, &me->gpu, me->input.n_thread, me->mapping, &me->cluster);
        cake_planning_set_layers(&me->cluster, &me->input);
        cake_calibrate_reading(world, me);
    }
    return err;
}

/* Rank 0 decides, and logs why. */
static void choose_replicas(const cake_rank_options *o, const cake_comm *world, cake_rank *me)
{
    int *n = &me->planning.n_replica;
    if (!world->rank)
        *n = cake_parallelism_decide(&me->planning, world->size, o->n_request);
    cake_comm_bcast(world, n, sizeof *n);
}

/* The first rank of a replica makes the plan and sends it to the others. */
static void agree_on_plan(const cake_comm *world, cake_rank *me)
{
    const cake_comm *replica = &me->replica;
    size_t n_layer = (size_t)cake_model_config(me->input.model)->n_layer;
    if (replica->rank == 0) {
        if (cake_partition_solve(&me->planning, world->rank, replica->size)) {
            cake_cluster_overflow(&me->cluster);
            if (me->gpu.used)
                cake_partition_solve(&me->planning, world->rank, replica->size);
        }
    } else
        me->planning.plan =
            (cake_plan){.hop = cake_alloc(n_layer, sizeof(cake_hop)), .n_rank = replica->size};
    cake_comm_bcast(replica, &me->planning.plan.n_hop, sizeof me->planning.plan.n_hop);
    cake_comm_bcast(replica, me->planning.plan.hop, (size_t)me->planning.plan.n_hop * sizeof(cake_hop));
}

void cake_rank_partition(const cake_comm *world, int n_replica, cake_rank *me)
{
    me->planning.n_replica = n_replica;
    cake_comm_divide(world, n_replica, &me->replica);
    me->planning.rank = me->replica.rank;
    if (!me->planning.plan.hop)
        agree_on_plan(world, me);
    me->planning.plan.first = world->rank - me->replica.rank;
}

enum { NAME = 32 };

/* names [n_layer + 1]: the kernels of this rank's layers, the head last; empty where another rank has the
 * layer. */
static void fill_names(const cake_planning *p, char (*names)[NAME])
{
    const cake_plan *plan = &p->plan;
    cake_hop_part *part = cake_alloc((size_t)plan->n_hop + 2, sizeof *part);
    int n = cake_offload_of(p, plan, p->rank, part);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < part[i].hop.count; j++)
            snprintf(names[part[i].hop.first + j], NAME, "%s", part[i].kernels->name);
    if (p->rank == 0)
        snprintf(names[cake_model_config(p->input->model)->n_layer], NAME, "%s",
                 cake_offload_head(p, plan)->name);
    free(part);
}

/* "sm_90", or "sm_90 0-13, avx512 14-27 and head". */
static void add_names(char (*names)[NAME], int n_layer, cake_buf *out)
{
    for (int from = 0, to; from < n_layer; from = to) {
        for (to = from + 1; to < n_layer && !strcmp(names[from], names[to]); to++)
            ;
        bool head = to == n_layer && !strcmp(names[n_layer], names[from]);
        if (from == 0 && head) {
            cake_buf_adds(out, names[0]);
            return;
        }
        cake_buf_addf(out, "%s%s %d-%d%s", from ? ", " : "", names[from], from, to - 1,
                      head ? " and head" : "");
        if (to == n_layer && !head)
            cake_buf_addf(out, ", %s head", names[n_layer]);
    }
}

/* On rank 0, appends the name of the kernels that results depend on, or which layers have which; warns of
 * replicas that differ. All ranks call. */
static void describe_kernels(const cake_comm *world, const cake_planning *p, cake_buf *out)
{
    int n_layer = cake_model_config(p->input->model)->n_layer, size = world->size / p->n_replica;
    size_t n = (size_t)n_layer + 1;
    char(*own)[NAME] = cake_alloc(n, NAME),
    (*all)[NAME] = world->rank ? NULL : cake_alloc(n * (size_t)world->size, NAME);
    fill_names(p, own);
    cake_comm_gather(world, own, all, n * NAME);
    cake_buf other = {0};
    for (int r = 0; r < p->n_replica && world->rank == 0; r++) {
        memset(own, 0, n * NAME);
        for (int i = r * size; i < (r + 1) * size; i++)
            for (size_t j = 0; j < n; j++)
                if (all[(size_t)i * n + j][0])
                    memcpy(own[j], all[(size_t)i * n + j], NAME);
        other.len = 0;
        add_names(own, n_layer, r ? &other : out);
        if (r && strcmp(out->data, other.data)) {
            cake_log(CAKE_WARN, "planner",
                     "replica 0 computes with %s, replica %d with %s: "
                     "the last digits of a result depend on the replica that computes it; "
                     "--gpu-layers, --device or --isa make them the same",
                     out->data, r, other.data);
            break;
        }
    }
    cake_buf_free(&other);
    free(own);
    free(all);
}

cake_err cake_rank_plan(const cake_rank_options *o, const cake_comm *world, cake_rank *me)
{
    cake_err err = cake_rank_open(o, world, me);
    if (err)
        return err;
    if (me->auto_replicas)
        choose_replicas(o, world, me);
    cake_rank_partition(world, me->planning.n_replica, me);
    err = cake_memory_check(world, me);
    if (err)
        return err;
    report_memory(me);
    describe_kernels(world, &me->planning, &me->isa);
    if (me->cluster.gpus && strcmp(o->isa, "auto") && !world->rank && !strstr(me->isa.data, o->isa))
        cake_log(CAKE_WARN, "planner", "--isa %s is ignored: nothing is computed on CPUs", o->isa);
    return check_lock(o, world, me);
}

/* Wraps the poll callback of a hop of two slices: the end of the first is the start of the second, and must
 * call only once. */
typedef struct poll_relay {
    void (*between)(void *arg, bool layer);
    void *arg;
    bool called;
} poll_relay;

static void relay_poll(void *arg, bool layer)
{
    poll_relay *relay = arg;
    if (!layer || !relay->called)
        relay->between(relay->arg, layer);
    relay->called = relay->called && !layer;
}

static cake_err forward(void *self, cake_wave *wave, cake_wave_buffers buffers,
                        void (*between)(void *arg, bool layer), void *arg)
{
    const cake_hop_slices *s = self;
    cake_err err = CAKE_OK;
    for (int i = 0; i < s->n && !err; i++) {
        poll_relay relay = {between, arg, i > 0}; /* the previous slice has called at its end */
        cake_wave_buffers part = {i == 0 ? buffers.from : NULL, i == s->n - 1 ? buffers.to : NULL};
        err = cake_slice_forward(s->slice[i], wave, part, relay_poll, &relay);
    }
    return err;
}

/* Threads that read weights for waves run on any cpu of this rank. */
static void bind_reader(void *arg)
{
    cake_affinity_helper(arg);
}

/* Loads weights into each memory of this rank. */
static cake_err load(const cake_rank_options *o, cake_rank *me)
{
    cake_range *ranges = cake_alloc((size_t)me->planning.plan.n_hop + 2, sizeof *ranges);
    cake_loading loading = {.threads = me->input.n_thread,
                            .mapped = o->mapped,
                            .drop = me->drop,
                            .cache = me->cache,
                            .bind = bind_reader,
                            .arg = &me->affinity};
    const cake_kernels *kernels[2];
    cake_err err = CAKE_OK;
    for (int i = cake_offload_memories(&me->input, kernels); i-- > 0 && !err;) {
        cake_weight_set set =
            cake_offload_weight_set(&me->planning, &me->planning.plan, me->replica.rank, kernels[i], ranges);
        if (set.n_range || set.embed || set.head)
            err = cake_model_load(me->model, &set, kernels[i], &loading);
        if (!err && kernels[i]->memory)
            err = kernels[i]->memory->check();
    }
    free(ranges);
    return err;
}

/* Opens the slices of the next hop of this rank. part: the hop's first one. Returns how many parts the hop
 * has. */
static int open_hop_slices(const cake_rank_options *o, cake_rank *me, const cake_hop *hop,
                           const cake_hop_part *part, cake_err *err)
{
    cake_hop_slices *s = &me->slices[me->n_slices];
    for (int count = 0; count < hop->count && !*err; count += part[s->n - 1].hop.count) {
        cake_slice_shape shape = cake_memory_plan_slice(&me->planning, &part[s->n].hop);
        *err = cake_slice_open(me->input.model, part[s->n].kernels, &shape, &s->slice[s->n]);
        if (!*err && o->lock && !part[s->n].kernels->memory)
            *err = cake_slice_lock(s->slice[s->n]);
        s->n++;
    }
    me->works[me->n_slices++] = (cake_hop_work){s, forward};
    return s->n;
}

static cake_err open_mtp(const cake_rank_options *o, cake_rank *me)
{
    const cake_hop hop = cake_offload_mtp(&me->planning);
    cake_slice_shape shape = cake_memory_plan_slice(&me->planning, &hop);
    if (!hop.count)
        return CAKE_OK;
    cake_err err = cake_slice_open(me->input.model, me->input.kernels, &shape, &me->mtp);
    return !err && o->lock ? cake_slice_lock(me->mtp) : err;
}

cake_err cake_rank_load(const cake_rank_options *o, const cake_comm *world, cake_rank *me)
{
    double start = cake_clock_now();
    cake_err err = cake_transport_plan_negotiate(o->link, world, me);
    if (err)
        return err;
    cake_affinity_pin(&me->affinity);
    err = load(o, me);
    cake_affinity_pin(&me->affinity); /* with very many threads not all load */
    if (!err && o->lock)
        err = cake_model_lock(me->model);
    size_t n_hop = (size_t)me->planning.plan.n_hop;
    me->slices = cake_alloc(n_hop, sizeof *me->slices);
    me->works = cake_alloc(n_hop, sizeof *me->works);
    cake_hop_part *part = cake_alloc(n_hop + 2, sizeof *part);
    cake_offload_of(&me->planning, &me->planning.plan, me->replica.rank, part);
    for (int i = 0, n = 0; i < me->planning.plan.n_hop && !err; i++)
        if (me->planning.plan.hop[i].rank == me->replica.rank)
            n += open_hop_slices(o, me, &me->planning.plan.hop[i], part + n, &err);
    if (!err && me->replica.rank == 0)
        err = open_mtp(o, me);
    free(part);
    me->report.read_bytes = cake_model_bytes_read(me->input.model);
    me->report.load_s = cake_clock_now() - start;
    err = cake_comm_agree(world, err);
    if (!err)
        cake_transport_plan_open(world, me);
    return err;
}

void cake_rank_close(cake_rank *me)
{
    for (int i = 0; i < me->n_slices; i++)
        for (int j = 0; j < me->slices[i].n; j++)
            cake_slice_close(me->slices[i].slice[j]);
    cake_slice_close(me->mtp);
    cake_transport_plan_close(me);
    cake_buf_free(&me->isa);
    free(me->slices);
    free(me->works);
    cake_model_close(me->model);
    cake_plan_free(&me->planning.plan);
    cake_affinity_close(&me->affinity);
    cake_machine_close(&me->machine);
    cake_cluster_free(&me->cluster);
    cake_plan_input_free(&me->input);
    cake_comm_free(&me->replica);
    if (me->input.gpu_kernels)
        cake_device_close();
    *me = (cake_rank){0};
}
