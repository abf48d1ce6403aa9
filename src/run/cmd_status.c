/* SPDX-License-Identifier: Apache-2.0
 *
 * `status`: in: names of result files; out: a line for each with the progress of its run. Read only, and
 * invisible to the runs.
 */
#include <stdio.h>
#include <time.h>

#include "base/duration.h"
#include "base/log.h"
#include "formats/json.h"
#include "record/inspect.h"
#include "run/run.h"

static const char *const state_name[] = {"starting", "running", "stopped", "finished"};

static double estimated_total(const cake_result_status *f)
{
    return f->share > 0 && f->share < 1 ? (double)f->done / f->share : -1;
}

static void add_ago(cake_buf *line, int64_t when)
{
    double seconds = (double)(time(NULL) - when);
    cake_buf_adds(line, "; wrote ");
    cake_duration_add(line, seconds > 0 ? seconds : 0);
    cake_buf_adds(line, " ago");
}

static void add_holder(cake_buf *line, const cake_result_status *f)
{
    const cake_holder *h = &f->holder;
    cake_buf_addf(line, "; process %lld on %s", (long long)h->pid, h->host);
    if (h->job[0])
        cake_buf_addf(line, ", Slurm job %s", h->job);
    else if (!h->here)
        cake_buf_adds(line, " (according to its lock; not checked on that host)");
}

static void compose(const char *path, const cake_result_status *f, cake_buf *line)
{
    cake_buf_adds(line, path);
    cake_log_escape(line);
    cake_buf_addf(line, ": %s: %lld done", state_name[f->state], (long long)f->done);
    if (estimated_total(f) >= 0)
        cake_buf_addf(line, " of about %.0f", estimated_total(f));
    if (f->failed)
        cake_buf_addf(line, " (%lld failed)", (long long)f->failed);
    if (f->shard)
        cake_buf_addf(line, ", shard %s", f->shard);
    if (f->state != CAKE_FINISHED && f->share >= 0)
        cake_buf_addf(line, ", %.1f %%", 100 * f->share);
    if (f->rate >= 0)
        cake_buf_addf(line, ", %.3g requests/s", f->rate);
    if (f->left >= 0 && f->state != CAKE_FINISHED) {
        cake_buf_adds(line, ", ");
        cake_duration_add(line, f->left);
        cake_buf_adds(line, f->state == CAKE_RUNNING ? " left" : " left, when resumed");
    }
    if (f->held)
        add_holder(line, f);
    if (f->wrote)
        add_ago(line, f->wrote);
    if (f->torn && !f->held) /* while a run writes, the last group is still growing */
        cake_buf_addf(line, "; %lld byte%s of an unfinished group", (long long)f->torn, cake_plural(f->torn));
    if (f->lost)
        cake_buf_addf(line, "; %lld bytes are damaged; their requests will be done again",
                      (long long)f->lost);
    if (f->changed)
        cake_buf_adds(line, "; changed since it was written");
    cake_buf_addc(line, '\n');
}

static void compose_json(const char *path, const cake_result_status *f, cake_buf *line)
{
    cake_json_put_text(line, "{\"results\": ", path);
    cake_json_put_text(line, ", \"state\": ", state_name[f->state]);
    cake_json_put_name(line, ", \"shard\": ", f->shard);
    cake_buf_addf(line, ", \"done\": %lld, \"failed\": %lld, \"begun_tokens\": %lld, \"total\": ",
                  (long long)f->done, (long long)f->failed, (long long)f->begun);
    if (f->state == CAKE_FINISHED)
        cake_buf_addf(line, "%lld", (long long)f->done);
    else
        cake_buf_adds(line, "null");
    cake_json_put_known(line, ", \"share\": ", f->share);
    cake_json_put_known(line, ", \"requests_per_s\": ", f->rate);
    cake_json_put_known(line, ", \"left_s\": ", f->state == CAKE_FINISHED ? 0 : f->left);
    cake_json_put_name(line, ", \"host\": ", f->held ? f->holder.host : NULL);
    cake_json_put_count(line, ", \"pid\": ", f->held ? f->holder.pid : 0);
    cake_json_put_name(line, ", \"slurm_job\": ", f->held ? f->holder.job : NULL);
    cake_json_put_count(line, ", \"created\": ", f->created);
    cake_json_put_count(line, ", \"wrote\": ", f->wrote);
    cake_buf_addf(line, ", \"torn_bytes\": %lld, \"damaged_bytes\": %lld, \"changed\": %s}\n",
                  (long long)(f->held ? 0 : f->torn), (long long)f->lost, f->changed ? "true" : "false");
}

/* For several files: how many are in each state, and sums. */
static void compose_sum(const int64_t *n, const cake_result_status *all, cake_buf *line)
{
    const char *separator = "all: ";
    for (int i = 0; i <= CAKE_FINISHED; i++)
        if (n[i]) {
            cake_buf_addf(line, "%s%lld %s", separator, (long long)n[i], state_name[i]);
            separator = ", ";
        }
    cake_buf_addf(line, "; %lld done (%lld failed)", (long long)all->done, (long long)all->failed);
    if (all->rate > 0)
        cake_buf_addf(line, ", %.3g requests/s", all->rate);
    if (all->left > 0) {
        cake_buf_adds(line, ", the longest has ");
        cake_duration_add(line, all->left);
        cake_buf_adds(line, " left");
    }
    cake_buf_addc(line, '\n');
}

cake_err cake_cmd_status(const cake_options *o)
{
    int64_t n[CAKE_FINISHED + 1] = {0};
    cake_result_status all = {0};
    cake_err err = CAKE_OK;
    for (int i = 0; i < o->operands.n; i++) {
        cake_buf line = {0};
        cake_result_status f;
        if (cake_inspect(o->operands.text[i], &f)) {
            err = CAKE_ERR_FATAL; /* report the others, too */
            continue;
        }
        (o->json ? compose_json : compose)(o->operands.text[i], &f, &line);
        fputs(line.data, stdout);
        n[f.state]++;
        all.done += f.done;
        all.failed += f.failed;
        all.rate += f.state == CAKE_RUNNING && f.rate > 0 ? f.rate : 0;
        all.left = f.left > all.left && f.state == CAKE_RUNNING ? f.left : all.left;
        cake_buf_free(&line);
        cake_inspect_free(&f);
    }
    if (o->operands.n > 1 && !o->json) {
        cake_buf line = {0};
        compose_sum(n, &all, &line);
        fputs(line.data, stdout);
        cake_buf_free(&line);
    }
    return err;
}
