/* SPDX-License-Identifier: Apache-2.0
 *
 * `merge`: in: finished results of all shards of a job; out: the results that a single run would have
 * written, and their RESULTS.job. No model, no input.
 */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "options/check_paths.h"
#include "record/format.h"
#include "record/record.h"
#include "record/shards.h"
#include "run/identity.h"
#include "run/run.h"

/* The output must not be one of the shards. */
static cake_err check_output(const cake_options *o)
{
    for (int i = 0; i < o->operands.n; i++)
        if (o->output &&
            (!strcmp(o->output, o->operands.text[i]) || cake_file_same(o->output, o->operands.text[i])))
            return cake_fail_usage("-o is one of the shards, %s: choose another name", o->output);
    return cake_paths_check(o);
}

static cake_err open_recorder(const cake_options *o, const cake_shards *shards, cake_recorder **out)
{
    const cake_journal_header *header = cake_shards_header(shards);
    cake_buf identity = {0}, form = {0};
    const char *output = cake_record_form(o->output);
    bool columns =
        !strcmp(output, "h5"); /* the identity says that a run cannot fill in what JSON lines lack */
    cake_buf_addf(&form, "\"%s%s\"", output, columns ? ", merged" : "");
    if (columns)
        cake_log(
            CAKE_WARN, "run",
            "%s has no prompts, and token ids only where requested: the JSON lines of shards have no more",
            o->output);
    cake_shards_identity(header->identity, "output", form.data, &identity);
    cake_record_options options = {.path = o->output,
                                   .resume = o->force ? CAKE_RESUME_NEVER : CAKE_RESUME_AUTO,
                                   .force = o->force,
                                   .copies = true,
                                   .identity = identity.data,
                                   .created = header->created,
                                   .job = header->job,
                                   .model = header->model};
    cake_err err = cake_record_open(&options, out);
    cake_buf_free(&identity);
    cake_buf_free(&form);
    return err;
}

/* Checks that existing results are of the same job. CAKE_END: they are complete. */
static cake_err check_existing(const cake_options *o, const cake_shards *shards,
                               const cake_recorder *recorder)
{
    size_t n;
    const cake_input_checkpoint *marks = cake_record_input_checkpoints(recorder, &n);
    cake_input_checkpoint end = cake_shards_checkpoint(shards),
                          last = n ? marks[n - 1] : (cake_input_checkpoint){0};
    bool same = last.requests == end.requests && last.sum == end.sum;
    if (!cake_record_finished(recorder) && (same || !cake_record_resumed(recorder)))
        return CAKE_OK;
    if (!same)
        return cake_fail("run",
                         "%s: already has results of the same job, of %lld request%s of the input; "
                         "--force overwrites them, or name another file with -o",
                         o->output, (long long)last.requests, cake_plural(last.requests));
    cake_log(CAKE_INFO, "run", "%s: all %lld requests are merged already", o->output,
             (long long)end.requests);
    return CAKE_END;
}

static cake_err copy_lines(cake_shards *shards, cake_recorder *recorder)
{
    cake_entry entry;
    cake_line_info info;
    const char *line;
    size_t len;
    bool text = cake_record_is_text(recorder);
    cake_err err;
    cake_record_read_to(recorder, cake_shards_checkpoint(shards));
    while (!(err = cake_shards_next(shards, &entry, &line, &len))) {
        if (text && !cake_line_info_read(line, len, &info))
            return cake_fail("run", "a shard was changed while it was read: merge again");
        if (text && info.n_choice > 1)
            return cake_fail(
                "run",
                "line %lld of the input has several answers, but a .txt file holds one per line: give "
                "-o a .jsonl file",
                (long long)info.index + 1);
        if (!cake_record_has(recorder, entry.order))
            err = cake_record_add_line(recorder, entry, line, len);
        if (err)
            return err;
    }
    return err == CAKE_END ? CAKE_OK : err;
}

static void log_merged(const cake_options *o, const cake_shards *shards)
{
    long long n = (long long)cake_shards_count(shards);
    char of[32] = "";
    if (o->operands.n > 1) /* else the results of a whole run */
        snprintf(of, sizeof of, " of %d shards", o->operands.n);
    cake_log(CAKE_INFO, "run", "%s: %lld request%s (%lld failed)%s",
             o->output ? o->output : "standard output", n, cake_plural(n),
             (long long)cake_shards_failed(shards), of);
}

cake_err cake_cmd_merge(const cake_options *o)
{
    cake_shards *shards = NULL;
    cake_recorder *recorder = NULL;
    cake_err err = check_output(o);
    if (!err)
        err = cake_shards_open(o->operands.text, o->operands.n,
                               cake_record_streams(o->output) ? NULL : o->output, &shards);
    if (!err)
        err = open_recorder(o, shards, &recorder);
    if (!err)
        err = check_existing(o, shards, recorder);
    bool began = !err;
    if (!err)
        err = copy_lines(shards, recorder);
    if (!err)
        err = cake_record_finish(recorder);
    if (began && err)
        cake_record_rollback(recorder);
    if (!err)
        log_merged(o, shards);
    cake_record_close(recorder);
    cake_shards_close(shards);
    return err == CAKE_END ? CAKE_OK : err;
}
