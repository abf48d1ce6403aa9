/* SPDX-License-Identifier: Apache-2.0
 *
 * The main job, in the order in which trouble is cheapest: plan and check everything, load, run, close.
 * Every rank goes through the same phases; each ends in agreement, so that no rank waits for a dead one.
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
#include "planner/stage.h"
#include "report/ending.h"
#include "report/gather.h"
#include "report/progress.h"
#include "report/report.h"
#include "run/batch_io.h"
#include "run/identity.h"
#include "trace/trace.h"
#include "watch/shutdown.h"
#include "watch/watchdog.h"

typedef struct job {
    const cake_options *options;
    const cake_comm *world;
    int argc;
    char **argv;
    double start, loaded;
    int64_t data; /* bytes of this process before anything was loaded */
    cake_stage stage;
    cake_batch_io answers;        /* rank 0 */
    cake_dispatcher *dispatcher;  /* rank 0 of a run with several replicas */
    cake_dispatch_client *client; /* the other roots' */
    cake_engine *root;            /* rank 0 of a replica */
    cake_trace *trace;            /* NULL: none is wanted */
    cake_pipeline *pipeline;
    cake_watchdog *watch; /* NULL: there is nobody to watch */
    cake_rank_status where;
    bool draining; /* rank 0 */
} job;

/* Where results go and where prompts come from, before the weights are read. */
static cake_err open_files(job *j)
{
    cake_err err = CAKE_OK;
    if (j->world->rank == 0) {
        err = cake_paths_check(j->options);
        if (!err && j->options->report)
            err = cake_atomic_file_check("report", j->options->report);
        if (!err && j->options->trace)
            err = cake_atomic_file_check("trace", j->options->trace);
        if (!err && j->options->progress_file)
            err = cake_atomic_file_check("progress", j->options->progress_file);
        if (!err)
            err = cake_batch_io_open(j->options, &j->stage, &j->answers);
    }
    err = cake_comm_agree(j->world, err);
    if (!err && j->world->rank && j->stage.replica.rank == 0) /* what is wrong for all was said once */
        err = cake_dispatch_client_open(j->options, cake_model_config(j->stage.model), j->stage.context,
                                        &j->client);
    return cake_comm_agree(j->world, err);
}

/* Where replica 0's sequences come from: the file, or, with others to be served, the dispatcher. All
 * ranks call. */
static cake_sequence_io open_desk(job *j)
{
    const cake_schedule_shape *shape = &j->stage.shape;
    cake_replica_capacity own = {.n_slot = shape->n_lane * shape->lane_seqs,
                                 .rows = (int64_t)shape->n_lane * shape->chunk};
    cake_sequence_io io = cake_batch_io_sequences(&j->answers);
    int n = j->stage.n_replica, each = j->world->size / n;
    cake_replica_capacity *all = cake_alloc((size_t)j->world->size, sizeof *all);
    cake_comm_gather(j->world, &own, all, sizeof own);
    if (n > 1 && !j->world->rank) {
        for (int r = 0; r < n; r++)
            all[r] = all[r * each];
        j->dispatcher = cake_dispatcher_open(&io, cake_model_config(j->stage.model), n, all);
        io = cake_dispatcher_io(j->dispatcher);
    }
    free(all);
    return io;
}

static cake_err open_root(job *j)
{
    cake_sequence_io io = open_desk(j);
    if (j->stage.replica.rank)
        return CAKE_OK;
    if (j->client)
        io = cake_dispatch_client_io(j->client);
    cake_err err = cake_engine_open(j->stage.model, cake_offload_embed(&j->stage, &j->stage.plan),
                                    cake_offload_head(&j->stage, &j->stage.plan), &j->stage.plan,
                                    &j->stage.shape, j->stage.n_thread, j->stage.n_decode, &io, &j->root);
    if (!err && j->client)
        err = cake_dispatch_client_connect(j->client, j->world, j->root);
    if (!err && j->dispatcher)
        err = cake_dispatcher_connect(j->dispatcher, j->world, j->root);
    return err;
}

/* Which part of the run it is in. */
static void enter(job *j, cake_phase phase)
{
    j->where.since = j->where.turned = cake_clock_now();
    j->where.phase = phase;
}

/* What the watch tells of this rank, before it is loaded. */
static void introduce(job *j)
{
    const cake_plan *plan = &j->stage.plan;
    cake_buf layers = {0};
    int own = j->stage.replica.rank, edges = 0, before = 0;
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
    enter(j, CAKE_PHASE_LOAD);
}

static cake_err open_pipeline(job *j)
{
    cake_err err = open_root(j);
    if (!err)
        err = cake_pipeline_open(&j->stage.replica, &j->stage.plan, j->stage.works, j->root,
                                 j->stage.shape.n_lane, j->stage.wave_bytes, j->stage.edge, &j->pipeline);
    j->stage.report.opened_bytes = (int64_t)cake_arena_bytes();
    j->stage.report.grown_bytes = cake_machine_data() - j->data;
    err = cake_comm_agree(j->world, err);
    if (!err && j->options->report)
        cake_gather_links(&j->stage);
    if (!err && j->trace)
        cake_trace_align(j->trace, j->world);
    return err;
}

static void say_status(const job *j, cake_err err)
{
    bool kept = !cake_record_streams(j->options->output);
    cake_ending_say(err, cake_batch_io_failed(&j->answers), kept ? j->options->output : NULL);
}

/* What is finished is on the disk before anybody goes. */
static void end_at_once(job *j, cake_err err)
{
    cake_progress_close();
    say_status(j, err);
    cake_batch_io_keep(&j->answers);
    cake_batch_io_close(&j->answers);
    cake_comm_abort_with(err);
}

/* What there is goes to the disk: the other replicas' waves may take longer than a killer waits. */
static void secure(job *j)
{
    cake_batch_io_flush(&j->answers);
    cake_batch_io_keep(&j->answers);
}

/* Nothing new begins. */
static void stop(job *j, cake_err err)
{
    j->draining = true;
    if (j->dispatcher)
        cake_dispatcher_stop(j->dispatcher, err);
    else
        cake_engine_stop(j->root, err);
}

/* Once it is time nothing new begins; a second signal ends all at once, as does a rank that is lost. */
static void drain(job *j)
{
    cake_err lost = cake_watchdog_lost(j->watch);
    if (lost || cake_shutdown_forced())
        end_at_once(j, lost ? lost : CAKE_STOPPED);
    if (j->draining || !cake_shutdown_requested())
        return;
    secure(j);
    stop(j, CAKE_STOPPED);
}

static bool attend(void *self)
{
    job *j = self;
    if (j->world->rank == 0) {
        drain(j);
        cake_progress_tick(&j->answers.counts, cake_shutdown_seconds_left());
        cake_err err = cake_batch_io_tick(&j->answers);
        if (err)
            stop(j, err);
    }
    return j->dispatcher ? cake_dispatcher_poll(j->dispatcher)
                         : j->client && cake_dispatch_client_poll(j->client);
}

/* Other replicas may work on for long: signals, limits and lost ranks are looked at as before. */
static void serve_others(job *j)
{
    do {
        j->where.turned = cake_clock_now();
        if (!attend(j))
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    } while (!cake_dispatcher_over(j->dispatcher));
}

/* The loop is over here; what serves other replicas, or is served, goes on until all are. */
static cake_err part(job *j, cake_err err)
{
    if (j->dispatcher) {
        cake_dispatcher_stop(j->dispatcher, err);
        if (err == CAKE_STOPPED)
            secure(j);
        serve_others(j);
        err = cake_dispatcher_error(j->dispatcher);
    }
    if (j->client)
        err = cake_dispatch_client_finish(j->client, err);
    return err;
}

/* Each rank's part is gathered; rank 0 says and writes the whole. */
static cake_err report(job *j)
{
    double total_s = cake_clock_now() - j->start;
    j->stage.report.peak_bytes = cake_machine_peak();
    cake_gathered all;
    cake_gather_stats(j->world, &j->stage, j->pipeline, j->root, &all);
    cake_err err = CAKE_OK;
    if (j->world->rank == 0) {
        cake_stage_stats stats = cake_pipeline_statistics(j->pipeline);
        for (int r = 0; j->dispatcher && r < all.n_replica; r++)
            all.stages[all.plans[r].first].requests = cake_dispatcher_given(j->dispatcher, r);
        all.stages[0].root.read_s += j->dispatcher ? cake_dispatcher_read_s(j->dispatcher) : 0;
        cake_report r = {.model = j->options->staged.given ? j->options->staged.given : j->options->model,
                         .argc = j->argc,
                         .settings = &j->options->config_file,
                         .argv = j->argv,
                         .plans = all.plans,
                         .n_replica = all.n_replica,
                         .n_layer = cake_model_config(j->stage.model)->n_layer,
                         .world = j->world,
                         .stages = all.stages,
                         .layer_s = all.layer_s,
                         .counts = j->answers.counts,
                         .load_s = j->loaded - j->start,
                         .run_s = stats.run_s,
                         .total_s = total_s,
                         .ttft = j->answers.ttft,
                         .itl = j->answers.itl,
                         .journal = cake_record_costs(j->answers.recorder)};
        cake_report_say(&r);
        err = j->options->report ? cake_report_write(&r, j->options->report) : CAKE_OK;
    }
    cake_gather_free(&all);
    return err;
}

/* The loop of this rank, as one session of its threads. */
typedef struct turning {
    job *job;
    cake_err err;
} turning;

static void turn(void *arg)
{
    turning *t = arg;
    t->err = cake_pipeline_run(t->job->pipeline, &(cake_poll_hook){t->job, attend});
}

static cake_err work(job *j)
{
    turning t = {.job = j};
    bool root = j->world->rank == 0;
    if (root) {
        cake_progress_open(j->options);
        cake_shutdown_loop();
    }
    cake_pipeline_set_trace(j->pipeline, j->trace);
    cake_pipeline_publish(j->pipeline, &j->where);
    if (j->dispatcher)
        cake_dispatcher_set_trace(j->dispatcher, j->trace, j->watch);
    enter(j, CAKE_PHASE_RUN);
    cake_exec_session(j->stage.n_thread, turn, &t);
    cake_err err = part(j, t.err);
    cake_progress_close();
    if (root) {
        cake_shutdown_write();
        cake_batch_io_flush(&j->answers);
    }
    /* what went wrong in the loop went wrong on the root; the other ranks learn of it here */
    err = cake_comm_agree(j->world, err);
    enter(j, CAKE_PHASE_WRITE);
    if (!err && root)
        err = cake_batch_io_finish(&j->answers);
    else if (err == CAKE_STOPPED && root)
        cake_batch_io_stop(&j->answers);
    enter(j, CAKE_PHASE_END);
    err = cake_comm_agree(j->world, err);
    /* a report or trace that cannot be written, after it could be before, is told; the results stand all the
     * same, and so does their status: who waits for them goes by it */
    if (!err || err == CAKE_STOPPED)
        cake_comm_agree(j->world, report(j));
    if (j->trace) { /* also of a run that failed */
        cake_trace_align(j->trace, j->world);
        cake_plan *plans = cake_gather_plans(j->world, &j->stage);
        cake_comm_agree(j->world, cake_trace_write(j->trace, j->world, plans, j->stage.n_replica,
                                                   j->options->trace, j->start));
        cake_gather_free_plans(plans, j->stage.n_replica);
    }
    if (!err && root)
        cake_batch_io_say(&j->answers);
    if (!err && root && cake_batch_io_failed(&j->answers))
        err = CAKE_ERR_REQUEST;
    return cake_comm_agree(j->world, err);
}

/* Results that an earlier run left are gone on from with its instruction set. */
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

cake_err cake_cmd_run(const cake_options *given, const cake_comm *world, int argc, char **argv)
{
    char isa[CAKE_IDENTITY_ISA];
    cake_options own = *given, *options = &own;
    job j = {.options = options, .world = world, .argc = argc, .argv = argv, .start = cake_clock_now()};
    find_isa(world, options, isa);
    j.watch = cake_watchdog_open(options, world, &j.where);
    cake_err err = cake_shutdown_open(options, world);
    if (!err)
        err = cake_stage_plan(options, world, &j.stage);
    if (!err)
        err = open_files(&j);
    bool opened = !err;
    if (opened && !world->rank) {
        cake_progress_begin(options);
        cake_shutdown_on_exit(cake_progress_stopped);
    }
    if (!err)
        introduce(&j);
    j.trace = options->trace && !err ? cake_trace_open() : NULL;
    double begin = cake_clock_now();
    j.data = cake_machine_data();
    if (!err)
        err = cake_stage_load(options, world, &j.stage);
    cake_trace_add(j.trace, (cake_span){.begin = begin, .kind = CAKE_SPAN_LOAD}, cake_clock_now());
    if (!err)
        err = open_pipeline(&j);
    j.loaded = cake_clock_now();
    if (!err)
        err = work(&j);
    cake_pipeline_close(j.pipeline);
    cake_engine_close(j.root);
    cake_dispatch_client_close(j.client);
    cake_dispatcher_close(j.dispatcher);
    if (err == CAKE_END) /* all was done already */
        err = !world->rank && cake_batch_io_failed(&j.answers) ? CAKE_ERR_REQUEST : CAKE_OK;
    if (world->rank == 0) {
        if (opened) {
            cake_progress_end(&j.answers.counts, err);
            say_status(&j, err);
        }
        cake_batch_io_close(&j.answers);
    }
    cake_stage_close(&j.stage);
    cake_trace_close(j.trace);
    cake_shutdown_close();
    cake_watchdog_close(j.watch);
    /* nobody goes with another status than 0 before rank 0 has closed its files */
    return cake_comm_agree(world, err);
}
