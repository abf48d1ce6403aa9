/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the options. Out: whether their files can be written. run, tokenize, plan and bench call, before
 * anything is opened.
 */
#include "run/outputs.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "run/beside.h"

typedef struct place {
    const char *name, *path; /* as it is called in messages; NULL: it is not used */
    bool written;
} place;

/* Streams and devices hold nothing that could be destroyed. */
static bool is_stream(const char *path)
{
    return !strcmp(path, "-") || !strncmp(path, "/dev/", 5);
}

/* What is written against the model's own files in a directory; none, if it cannot be read. */
static cake_err check_model(const char *dir, const place *places, size_t n)
{
    cake_buf path = {0};
    cake_err err = CAKE_OK;
    DIR *list = opendir(dir);
    for (struct dirent *entry; list && !err && (entry = readdir(list));) {
        if (!cake_beside_is_own(entry->d_name))
            continue;
        cake_buf_cut(&path, 0);
        cake_buf_addf(&path, "%s/%s", dir, entry->d_name);
        for (size_t i = 0; i < n && !err; i++)
            if (places[i].written && cake_file_same(places[i].path, path.data))
                err = cake_fail_usage(
                    "%s is a file of the model, %s: it would be overwritten; choose another name",
                    places[i].name, path.data);
    }
    if (list)
        closedir(list);
    cake_buf_free(&path);
    return err;
}

/* Only results are streamed; a file called "-" is nobody's wish. */
static cake_err check_names(const place *places, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (places[i].written && places[i].path && strcmp(places[i].name, "-o") &&
            !strcmp(places[i].path, "-"))
            return cake_fail_usage("%s -: name a file (/dev/stdout is one)", places[i].name);
    return CAKE_OK;
}

static cake_err check_pairs(const place *places, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++) {
            const char *a = places[i].path, *b = places[j].path;
            if (a && b && (!strcmp(a, b) || cake_file_same(a, b)) && !is_stream(a))
                return cake_fail_usage("%s and %s are the same file: %s", places[i].name, places[j].name, a);
        }
    return CAKE_OK;
}

cake_err cake_outputs_check(const cake_options *o)
{
    cake_buf partial = {0}, sorted = {0}, lock = {0}, done = {0}, templates = {0};
    bool keeps = o->output && !strcmp(o->command, "run");
    cake_buf_addf(&partial, "%s.partial", o->output ? o->output : "");
    cake_buf_addf(&sorted, "%s.tmp", partial.data);
    cake_buf_addf(&lock, "%s.lock", o->output ? o->output : "");
    cake_buf_addf(&done, "%s.job", o->output ? o->output : "");
    cake_buf_addf(&templates, "%s/additional_chat_templates", o->model ? o->model : "");
    const place places[] = {{"-i", o->input, false},
                            {"-o", o->output, true},
                            {"the .partial of -o", keeps ? partial.data : NULL, true},
                            {"the .partial.tmp of -o", keeps ? sorted.data : NULL, true},
                            {"the .lock of -o", keeps ? lock.data : NULL, true},
                            {"the .job of -o", keeps ? done.data : NULL, true},
                            {"--topology", o->topology, false},
                            {"--config", o->settings, false},
                            {"--write-topology", o->write_topology, true},
                            {"--report", o->report, true},
                            {"--progress-file", o->progress_file, true},
                            {"--trace", o->trace, true}};
    cake_err err = check_names(places, sizeof places / sizeof *places);
    if (!err)
        err = check_pairs(places, sizeof places / sizeof *places);
    if (!err && o->model)
        err = check_model(o->model, places, sizeof places / sizeof *places);
    if (!err && o->model)
        err = check_model(templates.data, places, sizeof places / sizeof *places);
    cake_buf_free(&partial);
    cake_buf_free(&sorted);
    cake_buf_free(&lock);
    cake_buf_free(&done);
    cake_buf_free(&templates);
    return err;
}

cake_err cake_outputs_flush(const cake_world *world, cake_err err)
{
    if (world->rank == 0 && (fflush(stdout) || ferror(stdout)) && (!err || err == CAKE_ERR_REQUEST))
        err = cake_fail("record", "standard output cannot be written: %s", strerror(errno));
    return cake_world_agree(world, err);
}
