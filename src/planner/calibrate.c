/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the machines of all ranks. Out: operations and bytes a second of each.
 * Invariant: all ranks decide by the same numbers: those that rank 0 broadcasts.
 */
#include "planner/calibrate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "kernels/device.h"
#include "kernels/peak.h"
#include "model/reading_rate.h"
#include "planner/offload.h"
#include "planner/rates_file.h"

#define ENOUGH 0.8 /* of its cpus: then a short measurement is right */

/* Bytes to read when memory bandwidth is measured: what a rank streams, so that a model that fits into caches
 * is measured in caches; no more than is needed to exceed them; and a fraction of free memory, because it is
 * not known whether the model fits. any_model: the rate is for other models, too. */
static int64_t stream_bytes(const cake_comm *world, const cake_rank *me, bool any_model)
{
    /* shared caches, and each core's own */
    int64_t max_bytes = (128LL << 20) + me->input.n_thread * (16LL << 20), min_bytes = 64 << 10;
    cake_range all = {0, cake_model_config(me->input.model)->n_layer};
    cake_weight_set whole = {.range = &all, .n_range = 1, .embed = true, .head = true};
    int64_t weights = (int64_t)cake_model_bytes(me->input.model, &whole, me->input.kernels) *
                      me->planning.n_replica / world->size;
    int64_t free_here = me->machine.memory / world->local_size / 4;
    max_bytes = free_here < max_bytes ? free_here : max_bytes;
    return weights < min_bytes || max_bytes < min_bytes ? min_bytes
           : weights > max_bytes || any_model           ? max_bytes
                                                        : weights;
}

/* Measures on all ranks at once, because ranks of one host share its memory. Where some share cpus, all
 * measure longer: time slices last milliseconds. *cpu_share falls to this rank's share of its cpus; *unshared
 * is the rate it would have with all of them. */
static double measure_rate(const cake_comm *world, const cake_rank *me, cake_peak_kind kind, bool any_model,
                           double *cpu_share, double *unshared)
{
    const double short_s = 0.02, long_s = 0.1; /* seconds */
    int64_t bytes = kind == CAKE_PEAK_READ ? stream_bytes(world, me, any_model) : 0;
    double share, rate;
    cake_comm_agree(world, CAKE_OK);
    *unshared = rate =
        cake_peak_quick(me->input.kernels->name, kind, bytes, me->input.n_thread, short_s, &share);
    if (cake_comm_allreduce_min(world, share > ENOUGH))
        return rate;
    rate = cake_peak_quick(me->input.kernels->name, kind, bytes, me->input.n_thread, long_s, &share);
    *unshared = share > 0 && share < 1 ? rate / share : rate;
    *cpu_share = share < *cpu_share ? share : *cpu_share;
    return rate;
}

static cake_peak_kind products_of(const cake_rank *me)
{
    return cake_peak_of_products(me->input.kernels, cake_model_dtype(me->input.model));
}

static cake_rate measure_gpu(cake_rank *me)
{
    cake_rate rate = {.flops = cake_device_rate(CAKE_PEAK_BF16), .bytes = cake_device_rate(CAKE_PEAK_READ)};
    me->report.peak_flops = rate.flops;
    me->report.peak_bandwidth = rate.bytes;
    return rate;
}

/* The CPU's rates now; the report compares the run with them. *cpu_share: the smallest share of a core. */
static cake_rate measure_cpu(const cake_calibrate_options *o, const cake_comm *world, cake_rank *me,
                             double *cpu_share)
{
    cake_rate rate = {0};
    cake_buf dropped = {0}; /* too little memory to measure with is no error of the run */
    cake_buf *previous = cake_log_capture(&dropped);
    bool any_model = o->keep != NULL;
    *cpu_share = 1;
    rate.flops = measure_rate(world, me, products_of(me), any_model, cpu_share, &me->report.peak_flops);
    rate.bytes = measure_rate(world, me, CAKE_PEAK_READ, any_model, cpu_share, &me->report.peak_bandwidth);
    cake_log_capture(previous);
    cake_buf_free(&dropped);
    if (o->plan && *cpu_share < ENOUGH)
        cake_log(CAKE_WARN, "planner",
                 "other processes use these CPUs: only %.0f %% of a core was free while speed was measured; "
                 "pass --rates FILE with speeds measured on an idle machine",
                 100 * *cpu_share);
    return rate;
}

/* Gathers the rates of all ranks on all ranks. elsewhere: the plan is for hosts with a cpu for each
 * thread. */
static void exchange(const cake_comm *world, cake_rank *me, cake_rate mine, bool elsewhere)
{
    bool few = me->machine.cpus < me->input.n_thread && !elsewhere;
    mine.cpus = few ? me->machine.cpus : me->input.n_thread;
    snprintf(mine.host, sizeof mine.host, "%s", world->host);
    cake_comm_gather(world, &mine, me->cluster.rate, sizeof mine);
    cake_rates_normalize(world->size, me->cluster.rate); /* only rank 0 has them */
    cake_comm_bcast(world, me->cluster.rate, (size_t)world->size * sizeof mine);
}

/* On rank 0: reads --rates. */
static cake_err read_rates(const cake_calibrate_options *o, const cake_comm *world, cake_rank *me)
{
    int max_threads = 0, own = me->cluster.rate[0].cpus;
    cake_err err = cake_rates_file_read(o->rates, me->input.kernels->name, products_of(me), world->size,
                                        me->cluster.rate, &max_threads);
    if (!err && o->plan && max_threads > own && world->size == 1 && !o->threads)
        cake_log(CAKE_WARN, "planner",
                 "%s has rates for up to %d threads; %d %s used, since a rank here has %d. "
                 "Give `--threads %d` to plan with %d",
                 o->rates, max_threads, own, own == 1 ? "is" : "are", own, max_threads, max_threads);
    if (!err)
        cake_rates_normalize(world->size, me->cluster.rate);
    return err;
}

/* On rank 0: compares the file with this machine, since it may be of another host or of a busy time. It only
 * warns. now [world->size]: operations a second of each rank with its cpus unshared. */
static void check_rates(const cake_calibrate_options *o, const cake_comm *world, const cake_rank *me,
                        const double *now)
{
    const double tolerance = 1.5;
    for (int i = 0; i < world->size; i++) {
        double from_file = me->cluster.rate[i].flops;
        if (now[i] <= 0 || (now[i] < tolerance * from_file && from_file < tolerance * now[i]))
            continue;
        cake_log(
            CAKE_WARN, "planner",
            "%s: rank %d on %s does %.3g GFLOP/s now, but the file says %.3g; "
            "unless something else is running there now, measure again: cake-mpi bench peak -o FILE.json",
            o->rates, i, me->cluster.rate[i].host, 1e-9 * now[i], 1e-9 * from_file);
        return;
    }
}

/* From rank 0; the report compares the run with them. */
static void share_rates(const cake_comm *world, cake_rank *me)
{
    cake_comm_bcast(world, me->cluster.rate, (size_t)world->size * sizeof *me->cluster.rate);
    me->report.peak_flops = me->cluster.rate[world->rank].flops;
    me->report.peak_bandwidth = me->cluster.rate[world->rank].bytes;
}

/* The rates of --rates. compare: with the products of all ranks now. */
static cake_err take_rates(const cake_calibrate_options *o, const cake_comm *world, cake_rank *me,
                           bool compare)
{
    size_t n = (size_t)world->size;
    double mine = 0, share = 1, *now = cake_alloc(n, sizeof *now);
    if (compare)
        measure_rate(world, me, products_of(me), false, &share, &mine);
    cake_comm_gather(world, &mine, now, sizeof *now);
    cake_err err = world->rank ? CAKE_OK : read_rates(o, world, me);
    if (!err && compare && !world->rank)
        check_rates(o, world, me, now);
    free(now);
    err = cake_comm_agree(world, err);
    if (err)
        return err;
    share_rates(world, me);
    return CAKE_OK;
}

/* The rates that an earlier run kept, if it did for all ranks. */
static cake_err recall(const cake_calibrate_options *o, const cake_comm *world, cake_rank *me, bool *all)
{
    cake_err err = CAKE_OK;
    *all = false;
    if (!world->rank)
        err = cake_rates_file_recall(o->keep, me->input.kernels->name, products_of(me), world->size,
                                     me->cluster.rate, all);
    if (err)
        cake_log(CAKE_INFO, "planner", "without %s the speeds are measured again", o->keep);
    err = cake_comm_agree(world, err);
    cake_comm_bcast(world, all, sizeof *all);
    if (err || !*all)
        return err;
    if (!world->rank)
        cake_rates_normalize(world->size, me->cluster.rate);
    share_rates(world, me);
    return CAKE_OK;
}

/* Measures, and keeps what no other process has disturbed. */
static cake_err measure(const cake_calibrate_options *o, const cake_comm *world, cake_rank *me,
                        bool elsewhere)
{
    double cpu_share;
    if (o->settle)
        o->settle(o->arg);
    exchange(world, me, measure_cpu(o, world, me, &cpu_share), elsewhere);
    if (!o->keep || o->plan) /* plan writes nothing that it was not asked to print */
        return CAKE_OK;
    cake_err err = CAKE_OK;
    bool alone = cake_comm_allreduce_min(world, cpu_share >= ENOUGH);
    if (!world->rank && alone && me->cluster.rate[0].flops > 0)
        err = cake_rates_file_keep(o->keep, me->input.kernels->name, products_of(me), world->size,
                                   me->cluster.rate);
    else if (!world->rank)
        cake_log(CAKE_INFO, "planner",
                 "%s: speeds are not kept, since other processes or ranks use these CPUs, too", o->keep);
    return cake_comm_agree(world, err);
}

static void log_rates(const cake_comm *world, const cake_rank *me)
{
    double slowest = 1;
    for (int i = 0; i < world->size; i++) {
        slowest = me->cluster.speed[i] < slowest ? me->cluster.speed[i] : slowest;
        cake_log(CAKE_DEBUG, "planner", "rank %d on %s: %.4g GFLOP/s, %.4g GB/s, speed %.2f", i,
                 me->cluster.rate[i].host, 1e-9 * me->cluster.rate[i].flops, 1e-9 * me->cluster.rate[i].bytes,
                 me->cluster.speed[i]);
    }
    if (slowest < 1)
        cake_log(CAKE_INFO, "planner",
                 "ranks are not equally fast: the slowest has %.2f of the fastest one's measured speed",
                 slowest);
}

cake_err cake_calibrate(const cake_calibrate_options *o, const cake_comm *world, cake_rank *me)
{
    size_t n = (size_t)world->size;
    bool large = cake_model_parameters(me->input.model) >= CAKE_MODEL_LARGE;
    const bool plan = o->plan;
    me->cluster.rate = cake_alloc(n, sizeof *me->cluster.rate);
    bool elsewhere = plan && o->rates && o->threads;
    exchange(world, me, (cake_rate){0}, elsewhere);
    bool streams = me->input.weights_memory && large; /* the size of waves depends on it */
    bool matters = plan || streams || (n > 1 && (large || !cake_rates_same(world->size, me->cluster.rate)));
    bool measured = !plan && cake_comm_allreduce_min(
                                 world, me->gpu.used); /* plan opens no GPU, so it knows no rates of one */
    bool none = o->rates || me->cluster.gpus;          /* CPUs are not measured */
    bool compare = matters && n > 1 && !plan;          /* a plan may be for other hosts */
    bool kept = false, wanted = (o->report || matters) && !none && !measured;
    cake_err err = CAKE_OK;
    if (measured)
        exchange(world, me, measure_gpu(me), elsewhere);
    if (wanted && o->keep)
        err = recall(o, world, me, &kept);
    if (wanted && !err && !kept)
        err = measure(o, world, me, elsewhere);
    if (o->settle && (streams || (o->rates && compare)))
        o->settle(o->arg);
    if (o->rates && !me->cluster.gpus)
        err = take_rates(o, world, me, compare);
    if (err)
        return err;
    cake_planning_normalize(&me->cluster, &me->input, world->size);
    if (!world->rank)
        log_rates(world, me);
    return CAKE_OK;
}

/* Whether the files of what the ranks of this host do not hold will stay in the page cache. The KV cache
 * takes half of what is left. */
static bool stays_cached(const cake_comm *world, const cake_rank *me)
{
    const cake_plan_input *in = &me->input;
    int n = world->local_size, size = world->size / me->planning.n_replica;
    double all = (double)in->layers.ends, share = cake_planning_held_fraction(in, size);
    for (int i = 0; i < cake_model_config(in->model)->n_layer; i++)
        all += (double)in->layers.bytes[i];
    double part = all * (n < size ? (double)n / size : 1); /* replicas read the same files */
    double left = (double)me->machine.memory - all * share / size * n;
    return left / 2 > part * (1 - share);
}

void cake_calibrate_reading(const cake_comm *world, cake_rank *me)
{
    bool large = cake_model_parameters(me->input.model) >= CAKE_MODEL_LARGE;
    if (!me->input.weights_memory || !large)
        return;
    cake_reading_rate rate =
        cake_reading_rate_measure(me->input.model, me->input.kernels, me->input.n_thread);
    bool cached = cake_comm_allreduce_min(world, stays_cached(world, me));
    me->input.read_rate = cached ? 0 : (double)cake_comm_allreduce_min(world, (int64_t)rate.disk);
    me->input.pack_rate = (double)cake_comm_allreduce_min(world, (int64_t)rate.cached);
    if (!world->rank)
        cake_log(CAKE_DEBUG, "planner", "weights are read at %.3g GB/s, from the page cache at %.3g GB/s: %s",
                 1e-9 * rate.disk, 1e-9 * rate.cached,
                 cached ? "the rest of them stays there" : "it does not hold the rest of them");
}
