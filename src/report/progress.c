/* SPDX-License-Identifier: Apache-2.0
 *
 * In: counts, clocks. Out: a bar, lines, --progress-file. cmd_run.c calls.
 * Invariant: an error of the file is reported once and never ends the run.
 */
#include "report/progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/log.h"
#include "base/slurm.h"
#include "base/stderr.h"
#include "formats/json.h"

static const double bar_every = 0.2, line_every = 60, file_every = 5; /* seconds */

static struct {
    cake_progress_options options;
    enum { NONE, BAR, LINE } mode;
    double start, next, next_file;
    int64_t began; /* seconds since 1970 */
    bool file;     /* it is wanted, and could be written so far */
} state;

static void compose(const cake_counts *c, const char *how, double until_stop, cake_buf *out)
{
    double seconds = state.start > 0 ? cake_clock_now() - state.start : 0;
    char host[256] = "", part[CAKE_SHARD_TEXT];
    gethostname(host, sizeof host - 1);
    cake_json_put_text(out, "{\"state\": ", how);
    cake_json_put_name(out, ", \"results\": ", state.options.results);
    cake_json_put_name(out, ", \"shard\": ", cake_shard_text(&state.options.shard, part));
    cake_json_put_name(out, ", \"host\": ", host);
    cake_buf_addf(out, ", \"pid\": %ld", (long)getpid());
    cake_json_put_name(out, ", \"slurm_job\": ", cake_slurm_job());
    cake_buf_addf(out, ", \"began\": %lld, \"written\": %lld", (long long)state.began, (long long)time(NULL));
    cake_buf_addf(out, ", \"done\": %lld, \"failed\": %lld, \"resumed\": %lld", (long long)c->done,
                  (long long)c->failed, (long long)c->resumed);
    cake_json_put_count(out, ", \"total\": ", c->total);
    cake_json_put_known(out, ", \"share\": ", c->done ? c->share : -1);
    cake_buf_addf(out, ", \"tokens\": {\"prompt\": %lld, \"generated\": %lld}", (long long)c->prompt,
                  (long long)c->generated);
    cake_json_put_known(out, ", \"requests_per_s\": ", seconds > 0 ? (double)c->done / seconds : -1);
    cake_json_put_known(out, ", \"generated_per_s\": ", seconds > 0 ? (double)c->generated / seconds : -1);
    cake_json_put_known(out, ", \"left_s\": ", c->left);
    cake_json_put_known(out, ", \"stops_in_s\": ", until_stop > 0 ? until_stop : 0);
    cake_buf_addf(out, ", \"ends_in_time\": %s}\n",
                  c->left < 0 || !isfinite(until_stop) ? "null"
                  : c->left <= until_stop              ? "true"
                                                       : "false");
}

static void write_file(const cake_counts *c, const char *how, double until_stop)
{
    cake_atomic_file whole;
    cake_buf text = {0};
    if (!state.file)
        return;
    state.next_file = cake_clock_now() + file_every;
    compose(c, how, until_stop, &text);
    cake_err err = cake_atomic_file_open("progress", state.options.file, &whole);
    if (!err) {
        fwrite(text.data, 1, text.len, whole.file);
        err = cake_atomic_file_close(&whole);
    }
    state.file = !err;
    cake_buf_free(&text);
}

void cake_progress_begin(const cake_progress_options *options)
{
    state.options = *options;
    state.began = time(NULL);
    state.start = 0;
    state.file = options->file != NULL;
    write_file(&(cake_counts){.share = -1, .left = -1}, "loading", INFINITY);
}

void cake_progress_open(void)
{
    const char *mode = state.options.mode;
    state.mode = !strcmp(mode, "none")   ? NONE
                 : !strcmp(mode, "bar")  ? BAR
                 : !strcmp(mode, "line") ? LINE
                 : isatty(STDERR_FILENO) ? BAR
                                         : LINE;
    state.start = cake_clock_now();
    state.next = state.start + (state.mode == BAR ? bar_every : line_every);
}

/* Appends the remaining time and whether a time limit comes before. */
static void add_time(const cake_counts *c, double until_stop, cake_buf *out)
{
    double left = c->left;
    if (left < 0)
        return;
    cake_buf_adds(out, ", ");
    cake_duration_add(out, left);
    cake_buf_adds(out, " left");
    if (!isfinite(until_stop))
        return;
    if (left <= until_stop) {
        cake_buf_adds(out, ", in time");
        return;
    }
    if (c->share < 0) {
        cake_buf_adds(out, ", but stops in ");
        cake_duration_add(out, until_stop > 0 ? until_stop : 0);
        return;
    }
    double reached = c->share + (left > 0 ? (1 - c->share) * (until_stop > 0 ? until_stop : 0) / left : 0);
    cake_buf_adds(out, ", but stops in ");
    cake_duration_add(out, until_stop > 0 ? until_stop : 0);
    cake_buf_addf(out, " at about %.0f %%", 100 * reached);
}

void cake_progress_bar(const cake_counts *c, double seconds, double until_stop, cake_buf *out)
{
    if (c->share >= 0) {
        int cells = (int)(c->share * 20);
        cake_buf_addf(out, "[%.*s%*s] ", cells, "####################", 20 - cells, "");
    }
    cake_buf_addf(out, "%lld request%s", (long long)(c->resumed + c->done),
                  cake_plural(c->resumed + c->done));
    if (c->failed)
        cake_buf_addf(out, " (%lld failed)", (long long)c->failed);
    cake_buf_addf(out, ", %.0f tokens/s", (double)c->generated / seconds);
    add_time(c, until_stop, out);
}

void cake_progress_line(const cake_counts *c, double seconds, double until_stop, cake_buf *out)
{
    cake_buf_addf(out, "%lld request%s done, %lld failed", (long long)(c->resumed + c->done),
                  cake_plural(c->resumed + c->done), (long long)c->failed);
    if (c->share >= 0)
        cake_buf_addf(out, ", %.1f %%", 100 * c->share);
    cake_buf_addf(out, ", %lld token%s generated, %.1f tokens/s, ", (long long)c->generated,
                  cake_plural(c->generated), (double)c->generated / seconds);
    cake_duration_add(out, seconds);
    add_time(c, until_stop, out);
}

void cake_progress_tick(const cake_counts *c, double until_stop)
{
    double now = cake_clock_now();
    if (state.file && now >= state.next_file)
        write_file(c, "running", until_stop);
    if (state.mode == NONE || now < state.next)
        return;
    state.next = now + (state.mode == BAR ? bar_every : line_every);
    cake_buf line = {0};
    if (state.mode == BAR) {
        cake_progress_bar(c, now - state.start, until_stop, &line);
        fprintf(stderr, "\r%s\033[K", line.data);
        fflush(stderr);
        cake_stderr_bar(true);
    } else {
        cake_progress_line(c, now - state.start, until_stop, &line);
        cake_log(CAKE_INFO, NULL, "%s", line.data);
    }
    cake_buf_free(&line);
}

void cake_progress_close(void)
{
    if (cake_stderr_bar(false))
        fputs("\r\033[K", stderr);
    state.mode = NONE;
}

void cake_progress_stopped(void)
{
    cake_progress_end(&(cake_counts){.share = -1, .left = -1}, CAKE_STOPPED);
}

void cake_progress_end(const cake_counts *counts, cake_err how)
{
    cake_counts last = *counts, *c = &last;
    if (!how || how == CAKE_ERR_REQUEST || how == CAKE_END)
        last.left = 0;
    write_file(c,
               how == CAKE_STOPPED                                 ? "stopped"
               : how && how != CAKE_ERR_REQUEST && how != CAKE_END ? "failed"
                                                                   : "finished",
               INFINITY);
    state.file = false;
}
