/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a model, a load. Out: tokens per second of whole runs and their fraction of the roofline: the minimum
 * time of the same rows at the summed peaks of all ranks.
 */
#include "bench/throughput.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/log.h"
#include "bench/peak_rates.h"
#include "bench/shapes.h"
#include "bench/source.h"
#include "engine/engine.h"
#include "kernels/device.h"
#include "planner/offload.h"
#include "report/report.h"
#include "run/from_options.h"

static const cost_load loads[] = {{8, 512, 1, 0},    {1, 16, 48, 0},    {8, 128, 32, 0},    {32, 128, 32, 0},
                                  {64, 128, 32, 0},  {16, 4096, 32, 0}, {1, 8192, 1, 0},    {16, 128, 16, 0},
                                  {16, 128, 128, 0}, {16, 1024, 16, 0}, {16, 1024, 128, 0}, {16, 256, 64, 0}};

enum { GIVEN = sizeof loads / sizeof *loads - 1 };

cake_err throughput_open(cake_bench *bench, const char *shape, const cost_load *load, cake_rank *me)
{
    cake_options o = *bench->options;
    cake_buf config = {0};
    *me = (cake_rank){0};
    if (!o.model) {
        o.model = o.shape ? o.shape : bench->smoke ? "tiny" : shape;
        if (!shape_config(o.model, o.layers, &config))
            return CAKE_ERR_USAGE;
        o.config = config.data;
        o.dummy = o.dummy < 0 ? 0 : o.dummy;
    }
    o.context = cost_load_longest(load);
    cake_rank_options from = cake_rank_options_from(&o);
    cake_err err = cake_rank_plan(&from, bench->world, me);
    if (!err && o.dummy >= 0 && bench->world->rank == 0)
        cake_log(CAKE_INFO, "bench", "making weights, %.2f GB on rank 0 ...",
                 1e-9 * (double)me->report.weights_bytes);
    if (!err)
        err = cake_rank_load(&from, bench->world, me);
    cake_buf_free(&config);
    return err;
}

cake_err throughput_run(const cake_bench *bench, const cake_rank *me, const cost_load *load,
                        source_steady *steady, cake_stage_stats *stats, double *per_pass)
{
    source from = {.load = *load, .n_vocab = cake_model_config(me->input.model)->n_vocab, .steady = steady};
    cake_sequence_io io = source_io(&from);
    cake_engine *root = NULL;
    cake_pipeline *pipeline = NULL;
    cake_err err = CAKE_OK;
    if (bench->world->rank == 0)
        err = cake_engine_open(
            &(cake_engine_setup){.model = me->input.model,
                                 .embed = cake_offload_embed(&me->planning, &me->planning.plan),
                                 .head = cake_offload_head(&me->planning, &me->planning.plan),
                                 .plan = &me->planning.plan,
                                 .shape = &me->planning.shape,
                                 .mtp = me->mtp,
                                 .wave_bytes = me->planning.wave_bytes,
                                 .n_thread = me->input.n_thread,
                                 .n_decode = me->input.n_decode},
            &io, &root);
    if (!err)
        err = cake_pipeline_open(&(cake_pipeline_setup){.world = bench->world,
                                                        .plan = &me->planning.plan,
                                                        .works = me->works,
                                                        .engine = root,
                                                        .n_lane = me->planning.shape.n_lane,
                                                        .cores = me->machine.cores_allowed,
                                                        .wave_bytes = me->planning.wave_bytes,
                                                        .edges = me->edge},
                                 &pipeline);
    err = cake_comm_agree(bench->world, err);
    if (!err)
        err = cake_comm_agree(bench->world, cake_pipeline_run(pipeline, NULL));
    if (!err)
        *stats = cake_pipeline_statistics(pipeline);
    if (!err && root && per_pass) {
        const cake_speculation_stats drafts = cake_engine_statistics(root).speculation;
        *per_pass = drafts.drafted ? (double)from.generated / (double)(from.generated - drafts.accepted) : 0;
    }
    CAKE_ASSERT(err || bench->world->rank || from.generated == (int64_t)load->seqs * load->generated);
    cake_pipeline_close(pipeline);
    cake_engine_close(root);
    return err;
}

cost_rates throughput_rates(cake_bench *bench, const cake_rank *me)
{
    if (me->input.gpu_kernels)
        return (cost_rates){cake_device_rate(CAKE_PEAK_BF16), cake_device_rate(CAKE_PEAK_READ)};
    const cake_kernels *named = bench->kernels;
    cake_peak_kind kind = cake_peak_of_products(me->input.kernels, cost_products(me->input.model));
    bench->kernels = me->input.kernels;
    cost_rates rates = {peak_rate(bench, (peak_kind)kind, me->input.n_thread),
                        peak_rate(bench, PEAK_READ, me->input.n_thread)};
    bench->kernels = named;
    return rates;
}

/* Sum over all ranks; on rank 0. */
static cost_rates sum_rates(const cake_comm *world, cost_rates mine)
{
    cost_rates *all = cake_alloc((size_t)world->size, sizeof *all), sum = {0, 0};
    cake_comm_gather(world, &mine, all, sizeof mine);
    for (int i = 0; i < world->size; i++) {
        sum.flops += all[i].flops;
        sum.bytes += all[i].bytes;
    }
    free(all);
    return sum;
}

/* A run; rates: the mean of those measured before and after it. */
typedef struct take {
    double seconds;
    double joules;   /* of all GPUs, on rank 0; negative: unknown */
    double per_pass; /* generated tokens a pass of a sequence; 0: nothing was drafted */
    cost_rates rates;
    source_steady *steady; /* owned */
} take;

/* One more result of the case. share: of the roofline; 0: none. What a peak reaches in one short try is no
 * roofline. */
static void report_value(cake_bench *bench, const cake_case *self, const char *what, int threads,
                         double value, const char *unit, double share)
{
    char name[40];
    share = bench->smoke ? 0 : share;
    snprintf(name, sizeof name, "%s%s", self->name, what);
    cake_bench_report(bench, name, threads, -1, value, unit, share, share > 0 ? "floor" : NULL);
}

/* Reports the steps after all prompts are computed, and their fraction of the roofline. */
static void report_steps(cake_bench *bench, const cake_case *self, const cake_rank *me, const cost_load *load,
                         const cost_model *roofline, const source_steady *steady)
{
    int64_t tokens = 0;
    for (int i = 0; i < load->seqs && steady->seen == 2; i++)
        tokens += load->generated - steady->then[i];
    double seconds = steady->until - steady->since;
    if (tokens < 1 || seconds <= 0)
        return;
    report_value(bench, self, ".steps", me->input.n_thread, (double)tokens / seconds, "tokens/s",
                 cost_roofline_steps(roofline, load, steady->then) / seconds);
}

static void report(cake_bench *bench, const cake_case *self, const cake_rank *me, const cost_load *load,
                   const take *run)
{
    const cost_rates rates = run->rates;
    const double seconds = run->seconds;
    const int threads = me->input.n_thread;
    cost_model roofline;
    cost_open(cake_model_config(me->input.model), rates, cost_weight_bytes(me->input.model),
              me->input.kv_dtype, &roofline);
    double share = cost_roofline(&roofline, load) / seconds, prompts = cost_load_prompts(load) / seconds,
           answers = (double)load->seqs * load->generated / seconds;
    const cake_kernels *named = bench->kernels;
    bench->kernels = cake_offload_first(&me->input);
    report_value(bench, self, "", threads, prompts + answers, "tokens/s", share);
    report_value(bench, self, ".prompt", threads, prompts, "tokens/s", 0);
    report_value(bench, self, ".generated", threads, answers, "tokens/s", 0);
    report_steps(bench, self, me, load, &roofline, run->steady);
    if (run->per_pass > 0)
        report_value(bench, self, ".per_pass", threads, run->per_pass, "tokens/pass", 0);
    report_value(bench, self, ".flops", threads, rates.flops * 1e-9, "GFLOP/s", 0);
    report_value(bench, self, ".bandwidth", threads, rates.bytes * 1e-9, "GB/s", 0);
    if (run->joules >= 0) {
        report_value(bench, self, ".energy", threads, 1e6 * run->joules / ((prompts + answers) * seconds),
                     "J/Mtoken", 0);
        report_value(bench, self, ".power", threads, run->joules / seconds, "W", 0);
    }
    bench->kernels = named;
    cost_close(&roofline);
}

static int ascending(const void *a, const void *b)
{
    double x = ((const take *)a)->seconds, y = ((const take *)b)->seconds;
    return x < y ? -1 : x > y;
}

/* The sum over all ranks, on rank 0. */
static double sum_joules(const cake_comm *world, const cake_rank *me, double mine)
{
    cake_report_stage own = me->report, *all = cake_alloc((size_t)world->size, sizeof *all);
    own.joules = mine;
    cake_comm_gather(world, &own, all, sizeof own);
    double sum = world->rank ? -1 : cake_report_joules(all, world->size);
    free(all);
    return sum;
}

static cake_err run_take(cake_bench *bench, const cake_rank *me, const cost_load *load, take *out)
{
    cost_rates before = throughput_rates(bench, me);
    cake_stage_stats stats = {0};
    out->steady = source_steady_open(load->seqs);
    cake_err err = throughput_run(bench, me, load, out->steady, &stats, &out->per_pass);
    if (err)
        return err;
    out->seconds = stats.run_s;
    out->joules = sum_joules(bench->world, me, stats.joules);
    cost_rates after = throughput_rates(bench, me);
    out->rates = sum_rates(bench->world,
                           (cost_rates){(before.flops + after.flops) / 2, (before.bytes + after.bytes) / 2});
    return CAKE_OK;
}

static cake_err run_throughput(cake_bench *bench, const cake_case *self)
{
    enum { TRIES = 3 };
    cost_load load = loads[self->kind];
    cake_rank me = {0};
    take takes[TRIES] = {{0}};
    int tries = bench->smoke ? 1 : TRIES;
    if (self->kind == GIVEN && bench->options->batch)
        cost_load_read(bench->options->batch, &load);
    else if (bench->smoke)
        load = (cost_load){load.seqs < 4 ? load.seqs : 4, load.prompt < 70 ? load.prompt : 70,
                           load.generated < 3 ? load.generated : 3, 0};
    cake_err err = throughput_open(bench, "qwen3-0.6b", &load, &me);
    for (int i = 0; i < tries && !err; i++)
        err = run_take(bench, &me, &load, &takes[i]);
    if (!err && bench->world->rank == 0) {
        qsort(takes, (size_t)tries, sizeof *takes, ascending);
        report(bench, self, &me, &load, &takes[tries / 2]);
    }
    for (int i = 0; i < TRIES; i++)
        source_steady_close(takes[i].steady);
    cake_rank_close(&me);
    return err;
}

const cake_case cake_cases_throughput[] = {
    {"throughput.prefill-512", "8 prompts of 512 tokens, 1 generated for each", run_throughput, 0},
    {"throughput.decode-1", "1 prompt of 16 tokens, 48 generated", run_throughput, 1},
    {"throughput.batch-8", "8 prompts of 128 tokens, 32 generated for each", run_throughput, 2},
    {"throughput.batch-32", "32 prompts of 128 tokens, 32 generated for each", run_throughput, 3},
    {"throughput.batch-64", "64 prompts of 128 tokens, 32 generated for each", run_throughput, 4},
    {"throughput.context-4096", "16 prompts of 4,096 tokens, 32 generated for each", run_throughput, 5},
    {"throughput.prefill-8192", "1 prompt of 8,192 tokens, 1 generated", run_throughput, 6},
    {"throughput.grid-128x16", "16 prompts of 128 tokens, 16 generated for each", run_throughput, 7},
    {"throughput.grid-128x128", "16 prompts of 128 tokens, 128 generated for each", run_throughput, 8},
    {"throughput.grid-1024x16", "16 prompts of 1,024 tokens, 16 generated for each", run_throughput, 9},
    {"throughput.grid-1024x128", "16 prompts of 1,024 tokens, 128 generated for each", run_throughput, 10},
    {"throughput.load", "what --batch says", run_throughput, GIVEN},
    {NULL, NULL, NULL, 0},
};
