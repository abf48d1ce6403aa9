/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the machines of all ranks. Out: operations and bytes a second of each, a plan.
 * Invariant: all ranks decide by the same numbers, which rank 0 has settled.
 *
 * What a layer or a row costs is operations by the model's shape; measured are how many operations take as
 * long as a byte, and how many of them each rank does in a second.
 */
#include "planner/calibrate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "kernels/device.h"
#include "kernels/peak.h"
#include "planner/offload.h"
#include "planner/rates_file.h"

/* Bytes to read for the rate of memory: as many as a rank streams, so that what lies in caches is held
 * against caches, no more than it takes to be sure of memory, and by far not all that is free: whether the
 * model fits is not known. */
static int64_t streamed(const cake_comm *world, const cake_rank *me)
{
    /* what one core's neighbours have of caches, and what each core has */
    int64_t most = (128LL << 20) + me->input.n_thread * (16LL << 20), least = 64 << 10;
    cake_range all = {0, cake_model_config(me->input.model)->n_layer};
    cake_weight_set whole = {.range = &all, .n_range = 1, .embed = true, .head = true};
    int64_t weights = (int64_t)cake_model_bytes(me->input.model, &whole, me->input.kernels) *
                      me->planning.n_replica / world->size;
    int64_t free_here = me->machine.memory / world->local_size / 4;
    most = free_here < most ? free_here : most;
    return weights < least || most < least ? least : weights > most ? most : weights;
}

/* All ranks at the same time, as they compute: those of one host share its memory. Where some share their
 * cpus with others, all look longer: turns at a cpu take milliseconds. *had becomes their share of them, if
 * it is less; *whole is what the rate would be if they had them all. */
static double look(const cake_comm *world, const cake_rank *me, cake_peak_kind kind, double *had,
                   double *whole)
{
    const double glance = 0.02, turns = 0.1; /* seconds */
    int64_t bytes = kind == CAKE_PEAK_READ ? streamed(world, me) : 0;
    double share, rate;
    cake_comm_agree(world, CAKE_OK);
    *whole = rate = cake_peak_quick(me->input.kernels->name, kind, bytes, me->input.n_thread, glance, &share);
    if (cake_comm_allreduce_min(world, share > 0.8))
        return rate;
    rate = cake_peak_quick(me->input.kernels->name, kind, bytes, me->input.n_thread, turns, &share);
    *whole = share > 0 && share < 1 ? rate / share : rate;
    *had = share < *had ? share : *had;
    return rate;
}

/* The same of a GPU: nobody shares it but who is on it, too. */
static cake_rate measure_gpu(cake_rank *me)
{
    cake_rate rate = {.flops = cake_device_rate(CAKE_PEAK_BF16), .bytes = cake_device_rate(CAKE_PEAK_READ)};
    me->report.peak_flops = rate.flops;
    me->report.peak_bandwidth = rate.bytes;
    return rate;
}

/* This rank's rates as they are now; the report holds the run against what the machine has. */
static cake_rate measure(const cake_comm *world, cake_rank *me, bool plan)
{
    cake_rate rate = {0};
    cake_peak_kind products = cake_peak_of_products(me->input.kernels, cake_model_dtype(me->input.model));
    cake_buf unsaid = {0}; /* that there is no memory to measure with is no error of the run */
    cake_buf *before = cake_log_capture(&unsaid);
    double had = 1;
    rate.flops = look(world, me, products, &had, &me->report.peak_flops);
    rate.bytes = look(world, me, CAKE_PEAK_READ, &had, &me->report.peak_bandwidth);
    cake_log_capture(before);
    cake_buf_free(&unsaid);
    if (plan && had < 0.8)
        cake_log(CAKE_WARN, "planner",
                 "others use these cpus: while rates were measured %.0f %% of one were left; "
                 "--rates FILE takes those of a better time",
                 100 * had);
    return rate;
}

/* Every rank's own becomes known to all. elsewhere: its threads are not to share the cpus that are here. */
static void exchange(const cake_comm *world, cake_rank *me, cake_rate mine, bool elsewhere)
{
    bool few = me->machine.cpus < me->input.n_thread && !elsewhere;
    mine.cpus = few ? me->machine.cpus : me->input.n_thread;
    snprintf(mine.host, sizeof mine.host, "%s", world->host);
    cake_comm_gather(world, &mine, me->cluster.rate, sizeof mine);
    cake_rates_normalize(world->size, me->cluster.rate); /* of use on rank 0 only */
    cake_comm_bcast(world, me->cluster.rate, (size_t)world->size * sizeof mine);
}

/* What was measured another time. On rank 0. */
static cake_err recall(const cake_calibrate_options *o, const cake_comm *world, cake_rank *me)
{
    int most = 0, own = me->cluster.rate[0].cpus;
    cake_peak_kind products = cake_peak_of_products(me->input.kernels, cake_model_dtype(me->input.model));
    cake_err err = cake_rates_file_read(o->rates, me->input.kernels->name, products, world->size,
                                        me->cluster.rate, &most);
    if (!err && most > own && world->size == 1 && !o->threads)
        cake_log(CAKE_WARN, "planner",
                 "%s has rates of up to %d threads, and those of %d are taken, "
                 "as many as this machine lets a rank have: --threads %d plans for ranks that have as many",
                 o->rates, most, own, most);
    if (!err)
        cake_rates_normalize(world->size, me->cluster.rate);
    return err;
}

/* On rank 0. A file may be of another host, or of a time when others used this one: plans go by it all the
 * same. now [world->size]: operations a second of each rank, had it its cpus to itself. */
static void doubt(const cake_calibrate_options *o, const cake_comm *world, const cake_rank *me,
                  const double *now)
{
    const double far = 1.5;
    for (int i = 0; i < world->size; i++) {
        double said = me->cluster.rate[i].flops;
        if (now[i] <= 0 || (now[i] < far * said && said < far * now[i]))
            continue;
        cake_log(
            CAKE_WARN, "planner",
            "%s: rank %d on %s does %.3g GFLOP/s now, but the file says %.3g; "
            "if that is not by what else runs there now, measure it again: cake-mpi bench peak -o FILE.json",
            o->rates, i, me->cluster.rate[i].host, 1e-9 * now[i], 1e-9 * said);
        return;
    }
}

/* On rank 0. */
static void tell(const cake_comm *world, const cake_rank *me)
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
                 "ranks are not equally fast, as measured: the slowest has %.2f of the fastest's speed",
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
    bool matters = plan || (n > 1 && (large || !cake_rates_same(world->size, me->cluster.rate)));
    bool measured = !plan && cake_comm_allreduce_min(
                                 world, me->gpu.used); /* of GPUs that are not opened no rates are known */
    matters = matters && !me->cluster.gpus;
    bool doubted =
        o->rates && !plan && n > 1 && !me->cluster.gpus; /* a plan may be of hosts that are not here */
    if (measured)
        exchange(world, me, measure_gpu(me), elsewhere);
    else if ((o->report && !me->cluster.gpus) || (matters && !o->rates) || doubted)
        exchange(world, me, measure(world, me, plan), elsewhere);
    if (o->rates && !me->cluster.gpus) {
        double *now = cake_alloc(n, sizeof *now);
        cake_comm_gather(world, &me->report.peak_flops, now, sizeof *now);
        cake_err err = world->rank ? CAKE_OK : recall(o, world, me);
        if (!err && doubted && !world->rank)
            doubt(o, world, me, now);
        free(now);
        err = cake_comm_agree(world, err);
        if (err)
            return err;
        cake_comm_bcast(world, me->cluster.rate, n * sizeof *me->cluster.rate);
    }
    cake_planning_normalize(&me->cluster, &me->input, world->size);
    if (!world->rank)
        tell(world, me);
    return CAKE_OK;
}
