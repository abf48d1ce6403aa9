/* SPDX-License-Identifier: Apache-2.0
 *
 * `pull`, `list` and `rm`: in: names of models; out: files in the cache, lines about them, or less of them.
 * No model is read.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/log.h"
#include "base/size.h"
#include "base/stderr.h"
#include "formats/json.h"
#include "hub/cache.h"
#include "hub/inventory.h"
#include "hub/pull.h"
#include "run/run.h"

static const double bar_every = 0.2, line_every = 60; /* seconds */

/* How far a download is. */
typedef struct meter {
    const char *name;
    enum { NONE, BAR, LINE } mode;
    int64_t bytes, have, came; /* of all files; that are here; since the start */
    double start, next;
} meter;

static meter meter_of(const cake_options *o, const char *name)
{
    const char *mode = o->progress;
    return (meter){.name = name,
                   .mode = !strcmp(mode, "none") || o->quiet ? NONE
                           : !strcmp(mode, "bar")            ? BAR
                           : !strcmp(mode, "line")           ? LINE
                           : isatty(STDERR_FILENO)           ? BAR
                                                             : LINE};
}

static void begin(void *own, size_t n_file, int64_t bytes, int64_t have)
{
    meter *m = own;
    m->bytes = bytes;
    m->have = have;
    m->start = cake_clock_now();
    m->next = m->start + (m->mode == BAR ? bar_every : line_every);
    cake_log(CAKE_INFO, "hub", "%s: %zu file%s, %s%s%s", m->name, n_file, cake_plural((int64_t)n_file),
             cake_size_text(bytes).s, have ? ", of which are here: " : "",
             have ? cake_size_text(have).s : "");
}

static void add_progress(const meter *m, double seconds, cake_buf *out)
{
    double rate = seconds > 0 ? (double)m->came / seconds : 0;
    double share = m->bytes ? (double)m->have / (double)m->bytes : 1;
    if (m->mode == BAR) {
        int cells = (int)(20 * share);
        cake_buf_addf(out, "[%.*s%*s] ", cells, "####################", 20 - cells, "");
    }
    cake_buf_addf(out, "%s of %s, %.1f %%", cake_size_text(m->have).s, cake_size_text(m->bytes).s,
                  100 * share);
    cake_buf_addf(out, ", %s/s", cake_size_text((int64_t)rate).s);
    if (rate > 0) {
        cake_buf_adds(out, ", ");
        cake_duration_add(out, (double)(m->bytes - m->have) / rate);
        cake_buf_adds(out, " left");
    }
}

static void advance(void *own, int64_t bytes)
{
    meter *m = own;
    double now = cake_clock_now();
    m->have += bytes;
    m->came += bytes > 0 ? bytes : 0;
    if (m->mode == NONE || now < m->next)
        return;
    m->next = now + (m->mode == BAR ? bar_every : line_every);
    cake_buf line = {0};
    add_progress(m, now - m->start, &line);
    if (m->mode == BAR) {
        fprintf(stderr, "\r%s\033[K", line.data);
        fflush(stderr);
        cake_stderr_bar(true);
    } else {
        cake_log(CAKE_INFO, "hub", "%s: %s", m->name, line.data);
    }
    cake_buf_free(&line);
}

static void end_bar(void)
{
    if (cake_stderr_bar(false))
        fputs("\r\033[K", stderr);
}

static cake_err pull_one(const cake_options *o, const char *cache, const char *name)
{
    meter m = meter_of(o, name);
    cake_buf path = {0};
    cake_hub_pull_options pull = {.cache = cache,
                                  .globs = {o->include.text, o->exclude.text, o->include.n, o->exclude.n},
                                  .begin = begin,
                                  .progress = advance,
                                  .own = &m};
    if (!cake_hub_name_read(name, &pull.name))
        return cake_fail_usage("\"%s\" is no name of a model: expected owner/name or owner/name@revision",
                               name);
    cake_err err = cake_hub_pull(&pull, &path);
    end_bar();
    if (!err)
        printf("%s\n", path.data);
    fflush(stdout);
    cake_buf_free(&path);
    return err;
}

cake_err cake_cmd_pull(const cake_options *o)
{
    cake_buf cache = {0};
    cake_err err = cake_hub_cache(&cache, NULL);
    for (int i = 0; i < o->operands.n && !err; i++)
        err = pull_one(o, cache.data, o->operands.text[i]);
    cake_buf_free(&cache);
    return err;
}

static void add_when(cake_buf *line, int64_t when)
{
    time_t seconds = (time_t)when;
    struct tm parts;
    char text[32] = "";
    if (localtime_r(&seconds, &parts))
        strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
    cake_buf_adds(line, text);
}

/* "owner/name@main v1"; without a branch or tag the commit; "owner/name" for what has no snapshot yet. */
static void add_name(const cake_hub_entry *e, cake_buf *out)
{
    cake_buf_addf(out, "%s%s%s", e->id, e->commit[0] ? "@" : "",
                  e->revisions.len ? e->revisions.data : e->commit);
    cake_log_escape(out);
}

static int width_of_names(const cake_hub_inventory *all)
{
    enum { MAX_WIDTH = 60 };
    size_t width = 0;
    for (size_t i = 0; i < all->n; i++) {
        cake_buf name = {0};
        add_name(&all->entry[i], &name);
        width = name.len > width ? name.len : width;
        cake_buf_free(&name);
    }
    return width < MAX_WIDTH ? (int)width : MAX_WIDTH;
}

static void compose(const cake_hub_entry *e, int width, cake_buf *line)
{
    cake_buf name = {0}, path = {0};
    add_name(e, &name);
    cake_buf_adds(&path, e->path.data);
    cake_log_escape(&path);
    cake_buf_addf(line, "%-*s  %10s  ", width, name.data, cake_size_text(e->bytes).s);
    add_when(line, e->when);
    cake_buf_addf(line, "  %s", path.data);
    if (e->foreign)
        cake_buf_adds(line, "  (has links that lead elsewhere: not read)");
    else if (!e->commit[0])
        cake_buf_addf(line, "  (not complete: cake-mpi pull %s goes on)", e->id);
    else if (e->n_lost)
        cake_buf_addf(line, "  (%zu file%s missing)", e->n_lost, cake_plural((int64_t)e->n_lost));
    cake_buf_addc(line, '\n');
    cake_buf_free(&name);
    cake_buf_free(&path);
}

static void compose_json(const cake_hub_entry *e, cake_buf *line)
{
    cake_json_put_text(line, "{\"name\": ", e->id);
    cake_json_put_name(line, ", \"commit\": ", e->commit[0] ? e->commit : NULL);
    cake_buf_adds(line, ", \"revisions\": [");
    const char *at = e->revisions.len ? e->revisions.data : "";
    for (size_t n; *at; at += n + (at[n] == ' ')) {
        n = strcspn(at, " ");
        cake_buf_adds(line, at > e->revisions.data ? ", " : "");
        cake_json_add_text(line, at, n);
    }
    cake_json_put_text(line, "], \"path\": ", e->path.data);
    cake_buf_addf(line, ", \"bytes\": %lld, \"changed\": %lld, \"complete\": %s}\n", (long long)e->bytes,
                  (long long)e->when, e->commit[0] && !e->n_lost && !e->foreign ? "true" : "false");
}

cake_err cake_cmd_list(const cake_options *o)
{
    cake_buf cache = {0}, text = {0};
    cake_hub_inventory all = {0};
    cake_err err = cake_hub_cache(&cache, NULL);
    if (!err)
        err = cake_hub_inventory_read(cache.data, &all);
    int width = width_of_names(&all);
    for (size_t i = 0; i < all.n; i++)
        if (o->json)
            compose_json(&all.entry[i], &text);
        else
            compose(&all.entry[i], width, &text);
    if (!err && !all.n)
        cake_log(CAKE_INFO, "hub", "no models are in %s", cache.data);
    if (text.len)
        fputs(text.data, stdout);
    cake_hub_inventory_free(&all);
    cake_buf_free(&cache);
    cake_buf_free(&text);
    return err;
}

/* Asks on the terminal; anything but a yes is a no. */
static bool ask(const char *id, const char *cache, int64_t bytes)
{
    char answer[16] = "";
    char folder[CAKE_HUB_FOLDER];
    cake_hub_name_folder(id, folder);
    fprintf(stderr, "Delete %s, %s/%s, %s? [y/N] ", id, cache, folder, cake_size_text(bytes).s);
    fflush(stderr);
    return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static cake_err delete_one(const cake_options *o, const char *cache, const char *ending)
{
    cake_hub_inventory all = {0};
    const char *id;
    cake_err err = cake_hub_inventory_read(cache, &all);
    if (!err)
        err = cake_hub_inventory_match(&all, cache, ending, &id);
    if (!err) {
        int64_t bytes = cake_hub_model_bytes(cache, id);
        if (!o->yes && !ask(id, cache, bytes))
            err = cake_fail("hub", "%s: not deleted", id);
        else if (!(err = cake_hub_delete(cache, id)))
            cake_log(CAKE_INFO, "hub", "%s: deleted, %s", id, cake_size_text(bytes).s);
    }
    cake_hub_inventory_free(&all);
    return err;
}

cake_err cake_cmd_rm(const cake_options *o)
{
    cake_buf cache = {0};
    cake_err err = cake_hub_cache(&cache, NULL);
    for (int i = 0; i < o->operands.n && !err; i++)
        err = delete_one(o, cache.data, o->operands.text[i]);
    cake_buf_free(&cache);
    return err;
}
