/* SPDX-License-Identifier: Apache-2.0
 *
 * `run`, ordered so that errors show early: plan and check everything, load, run, close. Every rank goes
 * through the same phases; all agree on the result of each, so that no rank waits for a dead one.
 */
#include "run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/log.h"
#include "dispatch/client.h"
#include "dispatch/dispatcher.h"
#include "engine/pipeline.h"
#include "options/check_paths.h"
#include "planner/offload.h"
#include "planner/rank.h"
#include "report/ending.h"
#include "report/gather.h"
#include "report/progress.h"
#include "report/report.h"
#include "run/batch_io.h"
#include "run/from_options.h"
#include "run/identity.h"
#include "trace/trace.h"
#include "watch/shutdown.h"
#include "watch/watchdog.h"

/* Parameters of models that take seconds to load: a broken tokenizer is reported before. */
#define LOADS_LONG 2000000000

typedef struct job {
    const cake_options *options;
    const cake_comm *world;
    int argc;
    char **argv;
    double start, loaded;
    int64_t data; /* bytes of this process before anything was loaded */
    cake_rank_options rank_options;
    cake_rank rank;
    cake_language *language;      /* rank 0, until io has it */
    cake_batch_io io;             /* rank 0 */
    cake_dispatcher *dispatcher;  /* rank 0 of a run with several replicas */
    cake_dispatch_client *client; /* the roots of other replicas */
    cake_engine *engine;          /* rank 0 of a replica */
    cake_trace *trace;            /* NULL: not requested */
    cake_pipeline *pipeline;
    cake_watchdog *watch; /* NULL: a single rank */
    cake_rank_status where;
    bool opened;   /* files are open */
    bool stopping; /* rank 0 */
    cake_err err;
} job;

/* Before --keep-rates is written. */
static cake_err check_paths(job *j)
{
    const char *kept = j->options->keep_rates;
    cake_err err = j->world->rank ? CAKE_OK : cake_paths_check(j->options);
    if (!err && kept && !j->world->rank)
        err = cake_atomic_file_check("speeds", kept);
    return cake_comm_agree(j->world, err);
}

/* Begins to open the tokenizer; whatever fails meanwhile is said at once. */
static cake_err open_language(job *j)
{
    cake_prepare_options from = cake_prepare_options_from(j->options);
    if (!j->world->rank)
        j->language = cake_prepare_language(&from);
    return CAKE_OK;
}

static void close_language(job *j)
{
    cake_language_close(j->language);
}

/* Speeds are measured while nothing else computes. */
static void settle_language(void *arg)
{
    cake_language_settle(arg);
}

static cake_err wait_for_language(job *j)
{
    cake_err err = j->client        ? cake_dispatch_client_wait(j->client)
                   : j->world->rank ? CAKE_OK
                                    : cake_batch_io_wait(&j->io);
    return cake_comm_agree(j->world, err);
}

/* Opens results and prompts, before the weights are read. */
static cake_err open_files(job *j)
{
    const bool large = cake_model_parameters(j->rank.input.model) >= LOADS_LONG;
    cake_err err = CAKE_OK;
    if (j->world->rank == 0) {
        if (j->options->report)
            err = cake_atomic_file_check("report", j->options->report);
        if (!err && j->options->trace)
            err = cake_atomic_file_check("trace", j->options->trace);
        if (!err && j->options->progress_file)
            err = cake_atomic_file_check("progress", j->options->progress_file);
        if (!err) {
            err = cake_batch_io_open(j->options, &j->rank, j->language, &j->io);
            j->language = NULL;
        }
        if (!err && large)
            err = cake_batch_io_wait(&j->io);
    }
    err = cake_comm_agree(j->world, err);
    if (!err && j->world->rank && j->rank.replica.rank == 0) /* errors common to all were logged once */
        j->client = cake_dispatch_client_open(j->options->model, cake_model_config(j->rank.input.model),
                                              j->rank.input.context);
    if (!err && large)
        err = wait_for_language(j);
    j->opened = !err;
    if (j->opened && !j->world->rank) {
        cake_progress_begin(&(cake_progress_options){.mode = j->options->progress,
                                                     .file = j->options->progress_file,
                                                     .results = j->options->output,
                                                     .shard = j->options->shard});
        cake_shutdown_on_exit(cake_progress_stopped);
    }
    return err;
}

/* Replica 0's sequences come from the file or, with several replicas, from the dispatcher. All ranks call. */
static cake_sequence_io open_dispatcher(job *j)
{
    const cake_schedule_shape *shape = &j->rank.planning.shape;
    cake_replica_capacity own = {.n_slot = shape->n_lane * shape->lane_seqs,
                                 .rows = (int64_t)shape->n_lane * shape->chunk};
    cake_sequence_io io = cake_batch_io_sequences(&j->io);
    int n = j->rank.planning.n_replica, each = j->world->size / n;
    cake_replica_capacity *all = cake_alloc((size_t)j->world->size, sizeof *all);
    cake_comm_gather(j->world, &own, all, sizeof own);
    if (n > 1 && !j->world->rank) {
        for (int r = 0; r < n; r++)
            all[r] = all[r * each];
        j->dispatcher = cake_dispatcher_open(&io, cake_model_config(j->rank.input.model), n, all);
        io = cake_dispatcher_io(j->dispatcher);
    }
    free(all);
    return io;
}

static cake_err open_engine(job *j)
{
    cake_sequence_io io = open_dispatcher(j);
    if (j->rank.replica.rank)
        return CAKE_OK;
    if (j->client)
        io = cake_dispatch_client_io(j->client);
    const cake_planning *planning = &j->rank.planning;
    cake_engine_setup setup = {.model = j->rank.input.model,
                               .embed = cake_offload_embed(planning, &planning->plan),
                               .head = cake_offload_head(planning, &planning->plan),
                               .plan = &planning->plan,
                               .shape = &planning->shape,
                               .mtp = j->rank.mtp,
                               .wave_bytes = planning->wave_bytes,
                               .n_thread = j->rank.input.n_thread,
                               .n_decode = j->rank.input.n_decode};
    cake_err err = cake_engine_open(&setup, &io, &j->engine);
    if (!err && j->client)
        err = cake_dispatch_client_connect(j->client, j->world, j->engine);
    if (!err && j->dispatcher)
        err = cake_dispatcher_connect(j->dispatcher, j->world, j->engine);
    return err;
}

static void enter_phase(job *j, cake_phase phase)
{
    j->where.since = j->where.loop_at = cake_clock_now();
    j->where.phase = phase;
}

/* Tells the watchdog which layers this rank has and which rank its waves come from. */
static void publish_rank(job *j)
{
    const cake_plan *plan = &j->rank.planning.plan;
    cake_buf layers = {0};
    int own = j->rank.replica.rank, edges = 0, before = 0;
    cake_plan_layers(plan, own, &layers);
    snprintf(j->where.layers, sizeof j->where.layers, "%s", layers.data);
    cake_buf_free(&layers);
    for (int e = 0; e <= plan->n_hop; e++) {
        int from = cake_plan_from(plan, e), to = cake_plan_to(plan, e);
        if (to == own && from != own) {
            edges++;
            before = from;
        }
    }
    j->where.root = plan->first;
    j->where.upstream = plan->first + before;
    j->where.edges = edges;
    enter_phase(j, CAKE_PHASE_LOAD);
}

static cake_err open_pipeline(job *j)
{
    cake_err err = open_engine(j);
    if (!err)
        err = cake_pipeline_open(&(cake_pipeline_setup){.world = &j->rank.replica,
                                                        .plan = &j->rank.planning.plan,
                                                        .works = j->rank.works,
                                                        .engine = j->engine,
                                                        .n_lane = j->rank.planning.shape.n_lane,
                                                        .cores = j->rank.machine.cores_allowed,
                                                        .wave_bytes = j->rank.planning.wave_bytes,
                                                        .edges = j->rank.edge},
                                 &j->pipeline);
    j->rank.report.opened_bytes = (int64_t)cake_arena_bytes();
    j->rank.report.grown_bytes = cake_machine_data() - j->data;
    err = cake_comm_agree(j->world, err);
    if (!err && j->options->report)
        cake_gather_links(&j->rank);
    if (!err && j->trace)
        cake_trace_align(j->trace, j->world);
    j->loaded = cake_clock_now();
    return err;
}

static void print_status(const job *j, cake_err err)
{
    bool kept = !cake_record_streams(j->options->output);
    cake_ending_say(err, cake_batch_io_failed(&j->io), kept ? j->options->output : NULL);
}

/* Ends all ranks now, after finished results are on the disk. */
static void abort_run(job *j, cake_err err)
{
    cake_progress_close();
    print_status(j, err);
    cake_batch_io_keep(&j->io);
    cake_batch_io_close(&j->io);
    cake_comm_abort_with(err);
}

/* Flushes results: other replicas may run for longer than a scheduler waits before SIGKILL. */
static void flush_results(job *j)
{
    cake_batch_io_flush(&j->io);
    cake_batch_io_keep(&j->io);
}

/* Admits no more requests; waves in flight finish. */
static void stop_admission(job *j, cake_err err)
{
    j->stopping = true;
    if (j->dispatcher)
        cake_dispatcher_stop(j->dispatcher, err);
    else
        cake_engine_stop(j->engine, err);
}

/* A signal or a limit stops admission; a second signal or a lost rank ends the run at once. */
static void check_shutdown(job *j)
{
    cake_err lost = cake_watchdog_lost(j->watch);
    if (lost || cake_shutdown_forced())
        abort_run(j, lost ? lost : CAKE_STOPPED);
    if (j->stopping || !cake_shutdown_requested())
        return;
    flush_results(j);
    stop_admission(j, CAKE_STOPPED);
}

static bool poll_run(void *self)
{
    job *j = self;
    if (j->world->rank == 0) {
        check_shutdown(j);
        cake_progress_tick(&j->io.counts, cake_shutdown_seconds_left());
        cake_err err = cake_batch_io_tick(&j->io);
        if (err)
            stop_admission(j, err);
    }
    return j->dispatcher ? cake_dispatcher_poll(j->dispatcher)
                         : j->client && cake_dispatch_client_poll(j->client);
}

/* Polls until all replicas are done: signals, limits and lost ranks still count. */
static void serve_replicas(job *j)
{
    do {
        j->where.loop_at = cake_clock_now();
        if (!poll_run(j))
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    } while (!cake_dispatcher_over(j->dispatcher));
}

/* After the loop of this rank: the dispatcher and its clients continue until all replicas are done. */
static cake_err end_loop(job *j, cake_err err)
{
    if (j->dispatcher) {
        cake_dispatcher_stop(j->dispatcher, err);
        if (err == CAKE_STOPPED)
            flush_results(j);
        serve_replicas(j);
        err = cake_dispatcher_error(j->dispatcher);
    }
    if (j->client)
        err = cake_dispatch_client_finish(j->client, err);
    return err;
}

/* Gathers all ranks' statistics; rank 0 prints and writes the report. */
static cake_err report(job *j)
{
    double total_s = cake_clock_now() - j->start;
    j->rank.report.peak_bytes = cake_machine_peak();
    cake_gathered all;
    cake_gather_stats(j->world, &j->rank, j->pipeline, j->engine, &all);
    cake_err err = CAKE_OK;
    if (j->world->rank == 0) {
        cake_stage_stats stats = cake_pipeline_statistics(j->pipeline);
        for (int r = 0; j->dispatcher && r < all.n_replica; r++)
            all.stages[all.plans[r].first].requests = cake_dispatcher_assigned(j->dispatcher, r);
        all.stages[0].root.read_s += j->dispatcher ? cake_dispatcher_read_s(j->dispatcher) : 0;
        cake_report r = {.model = cake_options_model_given(j->options),
                         .argc = j->argc,
                         .settings = &j->options->config_file,
                         .argv = j->argv,
                         .plans = all.plans,
                         .n_replica = all.n_replica,
                         .n_layer = cake_model_config(j->rank.input.model)->n_layer,
                         .n_expert = cake_model_config(j->rank.input.model)->moe.router.n_expert,
                         .world = j->world,
                         .stages = all.stages,
                         .layer_s = all.layer_s,
                         .counts = j->io.counts,
                         .load_s = j->loaded - j->start,
                         .run_s = stats.run_s,
                         .total_s = total_s,
                         .ttft = j->io.ttft,
                         .itl = j->io.itl,
                         .journal = cake_record_costs(j->io.recorder)};
        cake_report_say(&r);
        err = j->options->report ? cake_report_write(&r, j->options->report) : CAKE_OK;
    }
    cake_gather_free(&all);
    return err;
}

/* Arguments of run_loop, which runs as one session of the threads. */
typedef struct loop_args {
    job *job;
    cake_err err;
} loop_args;

static void run_loop(void *arg)
{
    loop_args *t = arg;
    t->err = cake_pipeline_run(t->job->pipeline, &(cake_poll_hook){t->job, poll_run});
}

static cake_err run_waves(job *j)
{
    loop_args t = {.job = j};
    bool root = j->world->rank == 0;
    if (root) {
        cake_progress_open();
        cake_shutdown_loop();
    }
    cake_pipeline_set_trace(j->pipeline, j->trace);
    cake_pipeline_publish(j->pipeline, &j->where);
    if (j->dispatcher)
        cake_dispatcher_set_trace(j->dispatcher, j->trace, j->watch);
    enter_phase(j, CAKE_PHASE_RUN);
    cake_exec_session(j->rank.input.n_thread, run_loop, &t);
    cake_err err = end_loop(j, t.err);
    cake_progress_close();
    if (root) {
        cake_shutdown_write();
        cake_batch_io_flush(&j->io);
    }
    /* other ranks learn of an error in the engine here */
    err = cake_comm_agree(j->world, err);
    enter_phase(j, CAKE_PHASE_WRITE);
    if (!err && root)
        err = cake_batch_io_finish(&j->io);
    else if (err == CAKE_STOPPED && root)
        cake_batch_io_stop(&j->io);
    enter_phase(j, CAKE_PHASE_END);
    err = cake_comm_agree(j->world, err);
    /* an error in writing report or trace is logged, but the exit status stays that of the results */
    if (!err || err == CAKE_STOPPED)
        cake_comm_agree(j->world, report(j));
    if (j->trace) { /* also after a failure */
        cake_trace_align(j->trace, j->world);
        cake_plan *plans = cake_gather_plans(j->world, &j->rank);
        cake_comm_agree(j->world, cake_trace_write(j->trace, j->world, plans, j->rank.planning.n_replica,
                                                   j->options->trace, j->start));
        cake_gather_free_plans(plans, j->rank.planning.n_replica);
    }
    if (!err && root)
        cake_batch_io_say(&j->io);
    if (!err && root && cake_batch_io_failed(&j->io))
        err = CAKE_ERR_REQUEST;
    return cake_comm_agree(j->world, err);
}

/* A resumed run keeps the instruction set of its earlier results. */
static void find_isa(const cake_comm *world, cake_options *options, char isa[CAKE_IDENTITY_ISA])
{
    isa[0] = 0;
    if (!world->rank && !strcmp(options->isa, "auto"))
        cake_identity_isa(options, isa);
    cake_comm_bcast(world, isa, CAKE_IDENTITY_ISA);
    if (!isa[0])
        return;
    options->isa = isa;
    options->isa_from = options->output;
}

static cake_err open_watchdog(job *j)
{
    const char *output = j->options->output;
    j->watch = cake_watchdog_open(j->options->watchdog, output && strcmp(output, "-"), j->world, &j->where);
    return CAKE_OK;
}

static void close_watchdog(job *j)
{
    cake_watchdog_close(j->watch);
}

static cake_err open_shutdown(job *j)
{
    return cake_shutdown_open(
        &(cake_time_limits){.max_runtime = j->options->max_runtime, .stop_before = j->options->stop_before},
        j->world);
}

static void close_shutdown(job *j)
{
    (void)j;
    cake_shutdown_close();
}

static cake_err plan(job *j)
{
    j->rank_options = cake_rank_options_from(j->options);
    if (!j->world->rank) {
        j->rank_options.n_request = cake_expected_requests(j->options);
        j->rank_options.settle = settle_language;
        j->rank_options.settle_arg = j->language;
    }
    return cake_rank_plan(&j->rank_options, j->world, &j->rank);
}

static void close_rank(job *j)
{
    cake_rank_close(&j->rank);
}

static cake_err open_trace(job *j)
{
    j->trace = j->options->trace ? cake_trace_open() : NULL;
    return CAKE_OK;
}

static void close_trace(job *j)
{
    cake_trace_close(j->trace);
}

static void close_files(job *j)
{
    cake_dispatch_client_close(j->client);
    if (j->world->rank)
        return;
    if (j->opened) {
        cake_progress_end(&j->io.counts, j->err);
        print_status(j, j->err);
    }
    cake_batch_io_close(&j->io);
}

static cake_err load(job *j)
{
    double begin = cake_clock_now();
    publish_rank(j);
    j->data = cake_machine_data();
    cake_err err = cake_rank_load(&j->rank_options, j->world, &j->rank);
    cake_trace_add(j->trace, (cake_span){.begin = begin, .kind = CAKE_SPAN_LOAD}, cake_clock_now());
    return err;
}

static void close_pipeline(job *j)
{
    cake_pipeline_close(j->pipeline);
    cake_engine_close(j->engine);
    cake_dispatcher_close(j->dispatcher);
}

/* The phases of a run, in order until one fails; then those that were begun are undone in reverse order. */
static const struct {
    cake_err (*run)(job *);
    void (*undo)(job *); /* also called if run failed; NULL: nothing to undo */
} phases[] = {
    {open_watchdog, close_watchdog}, /* is every rank alive? */
    {open_shutdown, close_shutdown}, /* signals, and the end of the time */
    {check_paths, NULL},             /* no file is read and written, or written twice */
    {open_language, close_language}, /* tokenizer and template, meanwhile */
    {plan, close_rank},              /* which rank has which layers; does it fit? */
    {open_trace, close_trace},
    {open_files, close_files}, /* prompts, results, what an earlier run left */
    {load, NULL},              /* weights and slices */
    {wait_for_language, NULL},
    {open_pipeline, close_pipeline}, /* engine, dispatcher, links */
    {run_waves, NULL},               /* waves, until every answer is written */
};

cake_err cake_cmd_run(const cake_options *given, const cake_comm *world, int argc, char **argv)
{
    enum { N_PHASE = sizeof phases / sizeof *phases };
    char isa[CAKE_IDENTITY_ISA];
    cake_options options = *given;
    job j = {.options = &options, .world = world, .argc = argc, .argv = argv, .start = cake_clock_now()};
    int n = 0;
    find_isa(world, &options, isa);
    while (n < N_PHASE && !j.err)
        j.err = phases[n++].run(&j);
    if (j.err == CAKE_END) /* everything was done before */
        j.err = !world->rank && cake_batch_io_failed(&j.io) ? CAKE_ERR_REQUEST : CAKE_OK;
    while (n-- > 0)
        if (phases[n].undo)
            phases[n].undo(&j);
    /* no rank exits with an error before rank 0 has closed its files */
    return cake_comm_agree(world, j.err);
}
