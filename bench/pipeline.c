/* SPDX-License-Identifier: Apache-2.0
 *
 * Pipelines with more ranks than the machine has cores: the real engine, schedule and links over all ranks,
 * with stages that wait as long as their layers would compute. Compared with the prediction of a model of the
 * pipeline and, for models that can run here, with a real run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/size.h"
#include "bench/modelled.h"
#include "bench/predict.h"
#include "bench/shapes.h"
#include "bench/source.h"
#include "bench/throughput.h"
#include "engine/engine.h"
#include "engine/speculation.h"
#include "logits/logits.h"
#include "planner/parallelism.h"
#include "planner/rank.h"

#define TAKES   60 /* seconds of a stage's work if no rates are given */
#define BALANCE 20 /* operations per byte if the bandwidth is not given */

typedef struct rig {
    cake_bench *bench;
    cake_model *model;
    const cake_config *config;
    cost_load load;
    cost_model cost;
    cake_dtype cache;
    int n_draft; /* tokens that a wave may have as drafts */
    cake_plan plan;
    cake_schedule_shape shape;
    size_t wave_bytes;
    int cores; /* that the ranks of this host share */
    prediction predicted;
    double *spent; /* [n_layer] of all ranks, on rank 0 */
    double head;   /* seconds of the modelled head */
    cake_stage_stats stats;
    cake_speculation_stats speculation; /* on rank 0 */
} rig;

/* There are enough pages for all sequences: modelled stages do not allocate them. */
static void shape_waves(rig *r)
{
    const cake_options *o = r->bench->options;
    const cake_config *c = r->config;
    cake_batch_size load = {.max_seqs = o->max_seqs ? (int)o->max_seqs : r->load.seqs,
                            .chunk = (int)o->chunk,
                            .n_stage = r->plan.n_rank,
                            .n_vocab = c->n_vocab};
    cake_cost all = cake_cost_of_layers(r->model, &cake_kernels_ref, 0, c->n_layer, r->cache);
    if (load.n_stage > 1)
        load.max_row_cost = cake_cost_row(&all, cost_load_longest(&r->load) - 1, false) / all.row_flops;
    cake_batch_size_decide(&load);
    r->shape = (cake_schedule_shape){.n_lane = load.n_lane,
                                     .lane_seqs = load.lane_seqs,
                                     .chunk = load.chunk,
                                     .max_row = load.max_row,
                                     .n_draft = r->n_draft,
                                     .n_kv_group = c->n_kv_group};
    if (load.n_stage > 1)
        cake_schedule_set_costs(&r->shape, &all, cake_cost_scores(c));
    for (int group = 0; group < c->n_kv_group; group++) {
        r->shape.window[group] = c->window[group];
        r->shape.n_page[group] =
            load.n_lane * load.lane_seqs *
            (cake_pages_held(c->window[group], cost_load_longest(&r->load), load.max_row) + 1);
    }
    for (int i = 0; i < c->n_layer; i++)
        r->shape.states = r->shape.states || c->layer[i].mixer == CAKE_MIX_DELTA;
    r->wave_bytes = cake_arena_round(cake_wave_bytes(load.max_row, cake_schedule_changes(&r->shape), c->dim));
}

/* Plans with the costs that layers have on a single rank. */
static void make_plan(rig *r)
{
    cake_hop whole = {0, 0, r->config->n_layer};
    cake_plan one = {.hop = &whole, .n_hop = 1, .n_rank = 1};
    int size = r->bench->world->size;
    r->plan = (cake_plan){.n_rank = size}; /* the shape depends on it */
    shape_waves(r);
    prediction p = predict(&r->cost, &one, &r->shape, &r->load);
    cake_partition_input input = {
        .n_rank = size, .n_layer = r->config->n_layer, .layer = p.layer, .root = p.head};
    cake_plan_partition(&input, &r->plan);
    predict_free(&p);
    r->predicted = predict(&r->cost, &r->plan, &r->shape, &r->load);
}

static double ideal(const rig *r, const double *layer, double head)
{
    return predict_ideal(layer, r->config->n_layer, head, r->bench->world->size);
}

/* Chooses rates so that the slowest stage works for TAKES seconds, then plans and predicts. */
static void choose_rates(rig *r, cost_rates rates)
{
    const cake_options *o = r->bench->options;
    if (o->flops)
        rates.flops = 1e9 * (double)o->flops;
    if (o->bandwidth)
        rates.bytes = 1e9 * (double)o->bandwidth;
    if (rates.flops <= 0 && rates.bytes <= 0) {
        r->cost.rates = (cost_rates){BALANCE, 1};
        make_plan(r);
        double scale = ideal(r, r->predicted.layer, r->predicted.head) / (r->bench->smoke ? 0.3 : TAKES);
        rates = (cost_rates){BALANCE * scale, scale};
        predict_free(&r->predicted);
        cake_plan_free(&r->plan);
    }
    r->cost.rates.flops = rates.flops > 0 ? rates.flops : BALANCE * rates.bytes;
    r->cost.rates.bytes = rates.bytes > 0 ? rates.bytes : rates.flops / BALANCE;
    make_plan(r);
}

/* Waves are real, and each rank has buffers for one of every lane. */
static cake_err check_memory(rig *r)
{
    const cake_comm *world = r->bench->world;
    cake_machine machine;
    cake_machine_read(&machine);
    r->cores = machine.cores_allowed;
    int64_t bytes = (int64_t)cake_pipeline_bytes(&r->plan, world->rank, r->shape.n_lane, r->wave_bytes);
    if (world->rank == 0)
        bytes += (int64_t)(cake_engine_bytes(r->config, &r->shape, 1) +
                           cake_logits_bytes(r->config, modelled_kernels(&r->cost, NULL, false),
                                             r->shape.lane_seqs, 1));
    bytes = cake_comm_node_sum(world, bytes);
    if (bytes > machine.memory && world->local_rank == 0)
        return cake_fail("bench",
                         "the waves of %d ranks take %s, and %s of memory are free; use a smaller --chunk",
                         world->local_size, cake_size_text(bytes).s, cake_size_text(machine.memory).s);
    return CAKE_OK;
}

/* Gathers the seconds of all layers on rank 0. */
static void gather(rig *r, const double *mine)
{
    const cake_comm *world = r->bench->world;
    size_t n = (size_t)r->config->n_layer;
    double *all = cake_alloc((size_t)world->size * n, sizeof *all);
    cake_comm_gather(world, mine, all, n * sizeof *all);
    for (size_t i = 0; i < n * (size_t)world->size && !world->rank; i++)
        r->spent[i % n] += all[i];
    free(all);
}

static cake_err conduct(rig *r)
{
    const cake_comm *world = r->bench->world;
    double *mine = cake_alloc((size_t)r->config->n_layer, sizeof *mine);
    modelled_hop modelled = {.cost = &r->cost, .spent = mine};
    for (int i = 0; i < r->plan.n_hop; i++)
        if (r->plan.hop[i].rank == world->rank) {
            modelled.first = r->plan.hop[i].first;
            modelled.count = r->plan.hop[i].count;
        }
    cake_hop_work work = modelled_work(&modelled);
    source from = {.load = r->load, .n_vocab = r->config->n_vocab};
    cake_sequence_io io = source_io(&from);
    cake_engine *root = NULL;
    cake_pipeline *pipeline = NULL;
    cake_err err = check_memory(r);
    const cake_kernels *kernels = modelled_kernels(&r->cost, &r->head, r->n_draft > 0);
    if (!err && world->rank == 0)
        err = cake_engine_open(&(cake_engine_setup){.model = r->model,
                                                    .embed = kernels,
                                                    .head = kernels,
                                                    .plan = &r->plan,
                                                    .shape = &r->shape,
                                                    .n_thread = 1},
                               &io, &root);
    if (!err)
        err = cake_pipeline_open(&(cake_pipeline_setup){.world = world,
                                                        .plan = &r->plan,
                                                        .works = &work,
                                                        .engine = root,
                                                        .n_lane = r->shape.n_lane,
                                                        .cores = r->cores,
                                                        .wave_bytes = r->wave_bytes},
                                 &pipeline);
    err = cake_comm_agree(world, err);
    if (!err)
        err = cake_comm_agree(world, cake_pipeline_run(pipeline, NULL));
    if (!err)
        r->stats = cake_pipeline_statistics(pipeline);
    if (!err)
        gather(r, mine);
    if (!err && root)
        r->speculation = cake_engine_statistics(root).speculation;
    cake_pipeline_close(pipeline);
    cake_engine_close(root);
    free(mine);
    return err;
}

static double tokens(const cost_load *load)
{
    return cost_load_prompts(load) + (double)load->seqs * load->generated;
}

static void report(rig *r)
{
    cake_bench *bench = r->bench;
    double busy = r->stats.compute_s + r->head, run = r->stats.run_s;
    if (bench->world->rank == 0) {
        cake_bench_report(bench, "pipeline.modelled", 1, -1, tokens(&r->load) / run, "tokens/s",
                          ideal(r, r->spent, r->head) / run, "ideal");
        cake_bench_report(bench, "pipeline.predicted", 1, -1, tokens(&r->load) / r->predicted.seconds,
                          "tokens/s", ideal(r, r->predicted.layer, r->predicted.head) / r->predicted.seconds,
                          "ideal");
        if (r->speculation.drafted)
            cake_bench_report(bench, "pipeline.drafts", 1, -1, (double)r->speculation.accepted, "accepted",
                              (double)r->speculation.accepted / (double)r->speculation.drafted, "drafts");
        cake_bench_report(bench, "pipeline.flops", 1, -1, r->cost.rates.flops * 1e-9, "GFLOP/s", 0, NULL);
        cake_bench_report(bench, "pipeline.bandwidth", 1, -1, r->cost.rates.bytes * 1e-9, "GB/s", 0, NULL);
    }
    cake_bench_report(bench, "pipeline.stage", 1, -1, busy, "s busy", busy / run, "run");
}

/* Runs the modelled pipeline of an open model, at these rates or at chosen ones. */
static cake_err run_model(rig *r, cost_rates rates, cake_dtype cache)
{
    const cake_comm *world = r->bench->world;
    r->config = cake_model_config(r->model);
    r->cache = cache;
    cake_err err =
        cake_parallelism_check(world->size, 1, r->config->n_layer, !world->rank, "start it with -np", false);
    if (err)
        return err;
    cost_open(r->config, rates, cost_weight_bytes(r->model), cache, &r->cost);
    r->spent = cake_alloc((size_t)r->config->n_layer, sizeof *r->spent);
    choose_rates(r, rates);
    err = conduct(r);
    if (!err)
        report(r);
    predict_free(&r->predicted);
    cake_plan_free(&r->plan);
    cost_close(&r->cost);
    free(r->spent);
    return err;
}

static cost_load choose_load(const cake_bench *bench, cost_load usual)
{
    cost_load load = bench->smoke ? (cost_load){4 * bench->world->size, 64, 4, 0} : usual;
    if (bench->options->batch)
        cost_load_read(bench->options->batch, &load);
    return load;
}

static cake_err run_modelled(cake_bench *bench, const cake_case *self)
{
    rig r = {.bench = bench, .load = choose_load(bench, (cost_load){256, 128, 32, 0})};
    const cake_options *o = bench->options;
    const char *shape = o->shape ? o->shape : bench->smoke ? "tiny" : "llama-3.1-405b";
    cake_buf config = {0};
    (void)self;
    r.n_draft = strcmp(o->speculate, "ngram") ? 0 : CAKE_MAX_DRAFTS;
    if (!strcmp(o->speculate, "mtp"))
        return bench->world->rank ? CAKE_ERR_USAGE
                                  : cake_fail_usage("--speculate mtp: pipeline.modelled computes nothing; "
                                                    "ngram models drafts");
    if (!o->model && !shape_config(shape, o->layers, &config))
        return CAKE_ERR_USAGE;
    cake_model_options options = {.dummy = true, .config = config.data};
    cake_err err = cake_model_open(o->model ? o->model : shape, &options, &r.model);
    err = cake_comm_agree(bench->world, err);
    if (!err)
        err = run_model(&r, (cost_rates){0, 0}, CAKE_BF16);
    cake_model_close(r.model);
    cake_buf_free(&config);
    return err;
}

/* A real run, then one that waits as long as the real one should take at the measured peaks. */
static cake_err run_real(cake_bench *bench, const cake_case *self)
{
    rig r = {.bench = bench, .load = choose_load(bench, (cost_load){64, 128, 32, 0})};
    cake_rank me = {0};
    cake_stage_stats stats = {0};
    cake_err err = throughput_open(bench, "qwen3-0.6b", &r.load, &me);
    if (!err)
        err = throughput_run(bench, &me, &r.load, NULL, &stats, NULL);
    if (!err) {
        cost_rates rates = throughput_rates(bench, &me);
        r.model = me.model;
        err = run_model(&r, rates, me.input.kv_dtype);
    }
    if (!err && bench->world->rank == 0)
        cake_bench_report(bench, self->name, me.input.n_thread, -1, tokens(&r.load) / stats.run_s, "tokens/s",
                          r.stats.run_s / stats.run_s, "pipeline.modelled");
    cake_rank_close(&me);
    return err;
}

const cake_case cake_cases_pipeline[] = {
    {"pipeline.modelled", "stages that wait as long as their layers would take", run_modelled, 0},
    {"pipeline.real", "a run that computes, compared with one that waits as long as it should take", run_real,
     0},
    {NULL, NULL, NULL, 0},
};
