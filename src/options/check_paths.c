/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the options. Out: whether their files can be written. run, tokenize, plan and bench call, before
 * anything is opened.
 */
#include "options/check_paths.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "model/side_files.h"
#include "options/internal.h"

typedef struct place {
    cake_buf name, path; /* owned; as it is called in messages */
    bool written, own;   /* own: results, or what goes with them */
} place;

typedef struct places {
    place *at; /* [n] owned */
    size_t n;
} places;

static void add(places *all, const char *name, const char *path, const char *behind, bool written, bool own)
{
    if (!path)
        return;
    all->at = cake_grow(all->at, all->n + 1, sizeof *all->at);
    place *p = &all->at[all->n++];
    *p = (place){.written = written, .own = own};
    cake_buf_addf(&p->name, *behind ? "the %s of %s" : "%s%s", *behind ? behind : name, *behind ? name : "");
    cake_buf_addf(&p->path, "%s%s", path, behind);
}

enum { LINKS = 8 }; /* that are followed, one behind the other */

/* Where a file is or will be: links are followed, also one that leads to nothing yet. Appended; as it is
 * given where its folder is not there. */
static void add_real(const char *path, int links, cake_buf *out)
{
    char target[PATH_MAX], *real = realpath(path, NULL);
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    cake_buf folder = {0}, next = {0};
    cake_buf_add(&folder, slash ? path : ".", slash ? (size_t)(slash - path) + 1 : 1);
    cake_buf_adds(&folder, "");
    ssize_t len = real || links == 0 ? -1 : readlink(path, target, sizeof target - 1);
    if (real) {
        cake_buf_adds(out, real);
    } else if (len > 0) {
        target[len] = 0;
        cake_buf_addf(&next, "%s%s%s", *target == '/' ? "" : folder.data, *target == '/' ? "" : "/", target);
        add_real(next.data, links - 1, out);
    } else {
        real = realpath(folder.data, NULL);
        cake_buf_addf(out, "%s/%s", real ? real : folder.data, base);
    }
    free(real);
    cake_buf_free(&folder);
    cake_buf_free(&next);
}

/* Streams and devices hold nothing that could be destroyed. */
static bool is_stream(const char *path)
{
    return !strcmp(path, "-") || !strncmp(path, "/dev/", 5);
}

/* What is written against the model's own files in a directory; none, if it cannot be read. */
static cake_err check_model(const char *dir, const places *all)
{
    cake_buf path = {0};
    cake_err err = CAKE_OK;
    DIR *list = opendir(dir);
    for (struct dirent *entry; list && !err && (entry = readdir(list));) {
        if (!cake_side_files_is_own(entry->d_name))
            continue;
        cake_buf_cut(&path, 0);
        cake_buf_addf(&path, "%s/%s", dir, entry->d_name);
        for (size_t i = 0; i < all->n && !err; i++)
            if (all->at[i].written && cake_file_same(all->at[i].path.data, path.data))
                err = cake_fail_usage(
                    "%s is a file of the model, %s: it would be overwritten; choose another name",
                    all->at[i].name.data, path.data);
    }
    if (list)
        closedir(list);
    cake_buf_free(&path);
    return err;
}

/* Only results are streamed; a file called "-" is nobody's wish. */
static cake_err check_names(const places *all)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->at[i].written && strcmp(all->at[i].name.data, "-o") && !strcmp(all->at[i].path.data, "-"))
            return cake_fail_usage("%s -: name a file (/dev/stdout is one)", all->at[i].name.data);
    return CAKE_OK;
}

static bool are_same(const char *a, const char *b)
{
    cake_buf x = {0}, y = {0};
    add_real(a, LINKS, &x);
    add_real(b, LINKS, &y);
    bool same = !strcmp(x.data, y.data) || cake_file_same(a, b);
    cake_buf_free(&x);
    cake_buf_free(&y);
    return same;
}

static cake_err check_pairs(const places *all)
{
    for (size_t i = 0; i < all->n; i++)
        for (size_t j = i + 1; j < all->n; j++) {
            const place *p = &all->at[i], *q = &all->at[j];
            const char *a = p->path.data, *b = q->path.data;
            if ((p->written || q->written) && !is_stream(a) && are_same(a, b))
                return cake_fail_usage("%s and %s are the same file: %s", p->name.data, q->name.data, a);
        }
    return CAKE_OK;
}

/* Whether a file begins as book-keeping of results does. */
static bool keeps_books(const char *path)
{
    static const char *const begins[] = {"{\"cake_job\": ", "{\"_cake\": {\"journal\": "};
    char head[32] = "";
    struct stat info;
    FILE *f = !stat(path, &info) && S_ISREG(info.st_mode) ? fopen(path, "rb") : NULL;
    if (f) {
        (void)!fread(head, 1, sizeof head - 1, f);
        fclose(f);
    }
    return !strncmp(head, begins[0], strlen(begins[0])) || !strncmp(head, begins[1], strlen(begins[1]));
}

/* What a run has computed in hours, and the files by which it is known again: no report, plan or list of
 * tokens is written over them. Results are guarded by record, which knows whose they are, and --force. */
static cake_err check_results(const place *p)
{
    struct stat info;
    cake_buf real = {0}, job = {0}, partial = {0};
    add_real(p->path.data, LINKS, &real);
    cake_buf_addf(&job, "%s.job", real.data);
    cake_buf_addf(&partial, "%s.partial", real.data);
    bool there = !stat(real.data, &info) && S_ISREG(info.st_mode);
    bool books = there && keeps_books(real.data);
    bool kept = !p->own && (keeps_books(partial.data) || (there && keeps_books(job.data)));
    cake_err err = CAKE_OK;
    if (books || kept)
        err =
            cake_fail_usage("%s %s: %s would be overwritten; choose another name", p->name.data, p->path.data,
                            books ? "what a run keeps beside its results"
                                  : "results of a run (its .job or "
                                    ".partial lies beside them)");
    cake_buf_free(&real);
    cake_buf_free(&job);
    cake_buf_free(&partial);
    return err;
}

/* Files that are written beside their name first, then renamed. */
static void add_whole(places *all, const char *name, const char *path)
{
    add(all, name, path, "", true, false);
    if (path && !is_stream(path))
        add(all, name, path, ".tmp", true, false);
}

static void list(const cake_options *o, places *all)
{
    static const char *const beside[] = {".partial", ".partial.tmp", ".lock", ".job"};
    bool merges = !strcmp(o->command, "merge");
    bool keeps = merges || cake_option_among("run|plan", o->command); /* plan looks as run would */
    add(all, "-i", o->input && strcmp(o->input, "-") ? o->input : NULL, "", false, false);
    add(all, "--topology", o->topology, "", false, false);
    add(all, "--config", o->settings, "", false, false);
    add(all, "--rates", o->rates, "", false, false);
    for (int i = 0; merges && i < o->operands.n; i++)
        add(all, "a shard", o->operands.text[i], "", false, false);
    add(all, "-o", o->output, "", true, keeps);
    for (size_t i = 0; keeps && i < sizeof beside / sizeof *beside; i++)
        add(all, "-o", o->output, beside[i], true, true);
    add_whole(all, "--write-topology", o->write_topology);
    add_whole(all, "--report", o->report);
    add_whole(all, "--progress-file", o->progress_file);
    add_whole(all, "--trace", o->trace);
}

cake_err cake_paths_check(const cake_options *o)
{
    places all = {0};
    cake_buf templates = {0};
    list(o, &all);
    cake_buf_addf(&templates, "%s/additional_chat_templates", o->model ? o->model : "");
    cake_err err = check_names(&all);
    if (!err)
        err = check_pairs(&all);
    if (!err && o->model)
        err = check_model(o->model, &all);
    if (!err && o->model)
        err = check_model(templates.data, &all);
    for (size_t i = 0; i < all.n && !err; i++)
        if (all.at[i].written && !is_stream(all.at[i].path.data) &&
            (!all.at[i].own || !strcmp(all.at[i].name.data, "-o")))
            err = check_results(&all.at[i]);
    for (size_t i = 0; i < all.n; i++) {
        cake_buf_free(&all.at[i].name);
        cake_buf_free(&all.at[i].path);
    }
    free(all.at);
    cake_buf_free(&templates);
    return err;
}

cake_err cake_paths_flush(const cake_comm *world, cake_err err)
{
    if (world->rank == 0 && (fflush(stdout) || ferror(stdout)) && (!err || err == CAKE_ERR_REQUEST))
        err = cake_fail("record", "standard output cannot be written: %s", strerror(errno));
    return cake_comm_agree(world, err);
}
