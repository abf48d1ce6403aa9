/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the options. Out: whether writing their files would destroy any that are read or that a run left.
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
#include "formats/model_files.h"
#include "model/side_files.h"
#include "options/internal.h"

typedef struct named_file {
    cake_buf name, path;        /* owned; name: for messages */
    bool is_written, is_result; /* is_result: the result file or a file that goes with it */
} named_file;

typedef struct file_list {
    named_file *at; /* [n] owned */
    size_t n;
} file_list;

static void add(file_list *all, const char *name, const char *path, const char *suffix, bool is_written,
                bool is_result)
{
    if (!path)
        return;
    all->at = cake_grow(all->at, all->n + 1, sizeof *all->at);
    named_file *f = &all->at[all->n++];
    *f = (named_file){.is_written = is_written, .is_result = is_result};
    cake_buf_addf(&f->name, *suffix ? "the %s of %s" : "%s%s", *suffix ? suffix : name, *suffix ? name : "");
    cake_buf_addf(&f->path, "%s%s", path, suffix);
}

enum { MAX_LINKS = 8 };

/* Appends the path that the file has or will have: symbolic links are followed, also a dangling one. If the
 * folder does not exist, the path is unchanged. */
static void add_real_path(const char *path, int links, cake_buf *out)
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
        add_real_path(next.data, links - 1, out);
    } else {
        real = realpath(folder.data, NULL);
        cake_buf_addf(out, "%s/%s", real ? real : folder.data, base);
    }
    free(real);
    cake_buf_free(&folder);
    cake_buf_free(&next);
}

/* Streams and devices hold no data that could be lost. */
static bool is_stream(const char *path)
{
    return !strcmp(path, "-") || !strncmp(path, "/dev/", 5);
}

/* A directory that cannot be read holds no files of the model. */
static cake_err check_model(const char *dir, const file_list *all)
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
            if (all->at[i].is_written && cake_file_same(all->at[i].path.data, path.data))
                err = cake_fail_usage(
                    "%s is a file of the model, %s, and would be overwritten; choose another name",
                    all->at[i].name.data, path.data);
    }
    if (list)
        closedir(list);
    cake_buf_free(&path);
    return err;
}

/* Only results go to standard output by "-"; nobody wants a file of that name. */
static cake_err check_names(const file_list *all)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->at[i].is_written && strcmp(all->at[i].name.data, "-o") && !strcmp(all->at[i].path.data, "-"))
            return cake_fail_usage("%s -: name a file (/dev/stdout is one)", all->at[i].name.data);
    return CAKE_OK;
}

static bool are_same(const char *a, const char *b)
{
    cake_buf x = {0}, y = {0};
    add_real_path(a, MAX_LINKS, &x);
    add_real_path(b, MAX_LINKS, &y);
    bool same = !strcmp(x.data, y.data) || cake_file_same(a, b);
    cake_buf_free(&x);
    cake_buf_free(&y);
    return same;
}

static cake_err check_pairs(const file_list *all)
{
    for (size_t i = 0; i < all->n; i++)
        for (size_t j = i + 1; j < all->n; j++) {
            const named_file *p = &all->at[i], *q = &all->at[j];
            const char *a = p->path.data, *b = q->path.data;
            if ((p->is_written || q->is_written) && !is_stream(a) && are_same(a, b))
                return cake_fail_usage("%s and %s are the same file: %s", p->name.data, q->name.data, a);
        }
    return CAKE_OK;
}

/* Whether the file is a .job or a .partial of results, by its first bytes. */
static bool is_bookkeeping(const char *path)
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

/* Results and their bookkeeping took hours to compute: no report, plan or list of tokens may overwrite them.
 * For results themselves record and --force decide. */
static cake_err check_results(const named_file *p)
{
    struct stat info;
    cake_buf real = {0}, job = {0}, partial = {0};
    add_real_path(p->path.data, MAX_LINKS, &real);
    cake_buf_addf(&job, "%s.job", real.data);
    cake_buf_addf(&partial, "%s.partial", real.data);
    bool exists = !stat(real.data, &info) && S_ISREG(info.st_mode);
    bool bookkeeping = exists && is_bookkeeping(real.data);
    bool results = !p->is_result && (is_bookkeeping(partial.data) || (exists && is_bookkeeping(job.data)));
    cake_err err = CAKE_OK;
    if (bookkeeping || results)
        err = cake_fail_usage("%s %s would overwrite %s; choose another name", p->name.data, p->path.data,
                              bookkeeping ? "the .job or .partial file of a run"
                                          : "results of a run (they have a .job or .partial file)");
    cake_buf_free(&real);
    cake_buf_free(&job);
    cake_buf_free(&partial);
    return err;
}

/* Files that are written under a temporary name first, then renamed. */
static void add_renamed(file_list *all, const char *name, const char *path)
{
    add(all, name, path, "", true, false);
    if (path && !is_stream(path))
        add(all, name, path, ".tmp", true, false);
}

static void list_files(const cake_options *o, file_list *all)
{
    static const char *const suffixes[] = {".partial", ".partial.tmp", ".lock", ".job"};
    bool merges = !strcmp(o->command, "merge");
    bool has_results = merges || cake_option_among("run|plan", o->command); /* plan checks what run would */
    add(all, "-i", o->input && strcmp(o->input, "-") ? o->input : NULL, "", false, false);
    add(all, "--topology", o->topology, "", false, false);
    add(all, "--config", o->config_path, "", false, false);
    add(all, "--rates", o->rates, "", false, false);
    for (int i = 0; merges && i < o->operands.n; i++)
        add(all, "a shard", o->operands.text[i], "", false, false);
    add(all, "-o", o->output, "", true, has_results);
    for (size_t i = 0; has_results && i < sizeof suffixes / sizeof *suffixes; i++)
        add(all, "-o", o->output, suffixes[i], true, true);
    add_renamed(all, "--write-topology", o->write_topology);
    add_renamed(all, "--keep-rates", o->keep_rates);
    add_renamed(all, "--report", o->report);
    add_renamed(all, "--progress-file", o->progress_file);
    add_renamed(all, "--trace", o->trace);
}

cake_err cake_paths_check(const cake_options *o)
{
    file_list all = {0};
    cake_buf dir = {0}, templates = {0};
    list_files(o, &all);
    cake_buf_adds(&dir, "");
    if (o->model)
        cake_model_files_dir(o->model, &dir);
    cake_buf_addf(&templates, "%s/additional_chat_templates", dir.data);
    cake_err err = check_names(&all);
    if (!err)
        err = check_pairs(&all);
    if (!err && o->model)
        err = check_model(dir.data, &all);
    if (!err && o->model)
        err = check_model(templates.data, &all);
    for (size_t i = 0; i < all.n && !err; i++)
        if (all.at[i].is_written && !is_stream(all.at[i].path.data) &&
            (!all.at[i].is_result || !strcmp(all.at[i].name.data, "-o")))
            err = check_results(&all.at[i]);
    for (size_t i = 0; i < all.n; i++) {
        cake_buf_free(&all.at[i].name);
        cake_buf_free(&all.at[i].path);
    }
    free(all.at);
    cake_buf_free(&templates);
    cake_buf_free(&dir);
    return err;
}

cake_err cake_paths_flush(const cake_comm *world, cake_err err)
{
    if (world->rank == 0 && (fflush(stdout) || ferror(stdout)) && (!err || err == CAKE_ERR_REQUEST))
        err = cake_fail("output", "standard output cannot be written: %s", strerror(errno));
    return cake_comm_agree(world, err);
}
