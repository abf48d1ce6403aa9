/* SPDX-License-Identifier: Apache-2.0
 *
 * The main job, in the order in which trouble is cheapest: plan and check everything, load, run, close.
 * Every rank goes through the same phases; each ends in agreement, so that no rank waits for a dead one.
 */
#include "run/run.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "run/answers.h"
#include "run/outputs.h"
#include "run/pipeline.h"
#include "run/progress.h"
#include "run/report.h"
#include "run/stage.h"
#include "run/tally.h"
#include "run/trace.h"
#include "run/whole.h"

typedef struct job {
    const cake_options *options;
    const cake_world *world;
    int argc;
    char **argv;
    double start, loaded;
    cake_stage stage;
    cake_answers answers; /* rank 0 */
    cake_root *root;      /* rank 0 */
    cake_trace *trace;    /* NULL: none is wanted */
    cake_pipeline *pipeline;
} job;

/* Where results go and where prompts come from, before the weights are read. */
static cake_err open_files(job *j)
{
    cake_err err = CAKE_OK;
    if (j->world->rank == 0) {
        const cake_config *config = cake_model_config(j->stage.model);
        err = cake_outputs_check(j->options);
        if (!err && j->options->report)
            err = cake_whole_check("report", j->options->report);
        if (!err && j->options->trace)
            err = cake_whole_check("trace", j->options->trace);
        if (!err)
            err = cake_answers_open(j->options, &j->answers);
        if (!err)
            err = cake_feed_open(j->options, &config->defaults, j->stage.context, config->n_vocab,
                                 &j->answers.feed);
    }
    return cake_world_agree(j->world, err);
}

static cake_err open_pipeline(job *j)
{
    cake_err err = CAKE_OK;
    if (j->world->rank == 0) {
        cake_conductor conductor = cake_answers_conductor(&j->answers);
        err = cake_root_open(j->stage.model, j->stage.kernels, &j->stage.plan, &j->stage.shape,
                             j->stage.n_thread, &conductor, &j->root);
    }
    if (!err)
        err = cake_pipeline_open(j->world, &j->stage.plan, j->stage.works, j->root, j->stage.shape.n_lane,
                                 j->stage.wave_bytes, &j->pipeline);
    err = cake_world_agree(j->world, err);
    if (!err && j->options->report)
        cake_tally_links(j->world, &j->stage);
    if (!err && j->trace)
        cake_trace_align(j->trace, j->world);
    return err;
}

static void tick(void *arg)
{
    cake_progress_tick(&((job *)arg)->answers.counts);
}

/* Each rank's part is gathered; rank 0 says and writes the whole. */
static cake_err report(job *j)
{
    double total_s = cake_clock_now() - j->start;
    j->stage.report.peak_bytes = cake_machine_peak();
    cake_tally all;
    cake_tally_gather(j->world, &j->stage, j->pipeline, j->root, &all);
    cake_err err = CAKE_OK;
    if (j->root) {
        cake_stage_stats stats = cake_pipeline_statistics(j->pipeline);
        cake_report r = {.model = j->options->model,
                         .argc = j->argc,
                         .argv = j->argv,
                         .plan = &j->stage.plan,
                         .world = j->world,
                         .stages = all.stages,
                         .layer_s = all.layer_s,
                         .counts = j->answers.counts,
                         .root = cake_root_statistics(j->root),
                         .load_s = j->loaded - j->start,
                         .run_s = stats.run_s,
                         .total_s = total_s,
                         .starved_s = stats.starved_s,
                         .ttft = j->answers.ttft,
                         .itl = j->answers.itl};
        cake_report_say(&r);
        err = j->options->report ? cake_report_write(&r, j->options->report) : CAKE_OK;
    }
    cake_tally_free(&all);
    return err;
}

static cake_err work(job *j)
{
    bool root = j->world->rank == 0;
    if (root)
        cake_progress_open(j->options->progress);
    cake_pipeline_watch(j->pipeline, j->trace);
    cake_err err = cake_pipeline_run(j->pipeline, root ? tick : NULL, j);
    cake_progress_close();
    /* what went wrong in the loop went wrong on the root; the other ranks learn of it here */
    err = cake_world_agree(j->world, err);
    if (!err && root)
        err = cake_answers_finish(&j->answers);
    err = cake_world_agree(j->world, err);
    if (!err)
        err = cake_world_agree(j->world, report(j));
    if (j->trace) { /* also of a run that failed */
        cake_trace_align(j->trace, j->world);
        cake_err traced = cake_trace_write(j->trace, j->world, &j->stage.plan, j->options->trace, j->start);
        err = cake_world_agree(j->world, err ? err : traced);
    }
    if (!err && root && j->answers.counts.failed)
        err = CAKE_ERR_REQUEST;
    return cake_world_agree(j->world, err);
}

cake_err cake_run(const cake_options *options, const cake_world *world, int argc, char **argv)
{
    job j = {.options = options, .world = world, .argc = argc, .argv = argv, .start = cake_clock_now()};
    cake_err err = cake_stage_plan(options, world, &j.stage);
    if (!err)
        err = open_files(&j);
    j.trace = options->trace && !err ? cake_trace_open() : NULL;
    double begin = cake_clock_now();
    if (!err)
        err = cake_stage_load(options, world, &j.stage);
    cake_trace_add(j.trace, (cake_span){.begin = begin, .kind = CAKE_SPAN_LOAD}, cake_clock_now());
    if (!err)
        err = open_pipeline(&j);
    j.loaded = cake_clock_now();
    if (!err)
        err = work(&j);
    cake_pipeline_close(j.pipeline);
    cake_root_close(j.root);
    if (world->rank == 0)
        cake_answers_close(&j.answers);
    cake_stage_close(&j.stage);
    cake_trace_close(j.trace);
    return err;
}
