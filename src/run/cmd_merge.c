/* SPDX-License-Identifier: Apache-2.0
 *
 * `merge`: in: finished results of all shards of a job; out: the results that one run of the whole would have
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

/* What is written must not be what is read. */
static cake_err check(const cake_options *o)
{
    for (int i = 0; i < o->operands.n; i++)
        if (o->output &&
            (!strcmp(o->output, o->operands.text[i]) || cake_file_same(o->output, o->operands.text[i])))
            return cake_fail_usage("-o is one of the shards, %s: choose another name", o->output);
    return cake_paths_check(o);
}

static cake_err open_recorder(const cake_options *o, const cake_shards *shards, cake_recorder **out)
{
    const cake_journal_head *head = cake_shards_head(shards);
    cake_buf identity = {0}, form = {0};
    const char *output = cake_record_form(o->output);
    bool columns =
        !strcmp(output, "h5"); /* what lines do not have, a run that is asked for them has to make */
    cake_buf_addf(&form, "\"%s%s\"", output, columns ? ", merged" : "");
    if (columns)
        cake_log(
            CAKE_WARN, "run",
            "%s: prompts, and token ids that requests did not ask for, are not in lines of JSON, nor in it",
            o->output);
    cake_shards_identity(head->identity, "output", form.data, &identity);
    cake_record_options options = {.path = o->output,
                                   .resume = o->force ? CAKE_RESUME_NEVER : CAKE_RESUME_AUTO,
                                   .force = o->force,
                                   .copies = true,
                                   .identity = identity.data,
                                   .created = head->created,
                                   .job = head->job,
                                   .model = head->model};
    cake_err err = cake_record_open(&options, out);
    cake_buf_free(&identity);
    cake_buf_free(&form);
    return err;
}

/* What is in the place of RESULTS is of the same job. CAKE_END: it is all there is to do. */
static cake_err take_up(const cake_options *o, const cake_shards *shards, const cake_recorder *recorder)
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
                         "%s: there are results of the same job already, of %lld requests of the input; "
                         "--force overwrites them, or name another file with -o",
                         o->output, (long long)last.requests);
    cake_log(CAKE_INFO, "run", "%s: all %lld requests are there already", o->output, (long long)end.requests);
    return CAKE_END;
}

static cake_err copy(cake_shards *shards, cake_recorder *recorder)
{
    cake_entry entry;
    cake_line_info told;
    const char *line;
    size_t len;
    bool text = cake_record_is_text(recorder);
    cake_err err;
    cake_record_read_to(recorder, cake_shards_checkpoint(shards));
    while (!(err = cake_shards_next(shards, &entry, &line, &len))) {
        if (text && !cake_line_info_read(line, len, &told))
            return cake_fail("run", "a shard was changed while it was read: merge again");
        if (text && told.n_choice > 1)
            return cake_fail("run",
                             "line %lld of the input has several answers; a .txt file has room for one: give "
                             "-o a .jsonl file",
                             (long long)told.index + 1);
        if (!cake_record_has(recorder, entry.order))
            err = cake_record_add_line(recorder, entry, line, len);
        if (err)
            return err;
    }
    return err == CAKE_END ? CAKE_OK : err;
}

cake_err cake_cmd_merge(const cake_options *o)
{
    cake_shards *shards = NULL;
    cake_recorder *recorder = NULL;
    cake_err err = check(o);
    if (!err)
        err = cake_shards_open(o->operands.text, o->operands.n,
                               cake_record_streams(o->output) ? NULL : o->output, &shards);
    if (!err)
        err = open_recorder(o, shards, &recorder);
    if (!err)
        err = take_up(o, shards, recorder);
    bool began = !err;
    if (!err)
        err = copy(shards, recorder);
    if (!err)
        err = cake_record_finish(recorder);
    if (began && err)
        cake_record_rollback(recorder);
    if (!err)
        cake_log(CAKE_INFO, "run", "%s: %lld requests (%lld failed) of %d shard%s",
                 o->output ? o->output : "standard output", (long long)cake_shards_count(shards),
                 (long long)cake_shards_failed(shards), o->operands.n, o->operands.n == 1 ? "" : "s");
    cake_record_close(recorder);
    cake_shards_close(shards);
    return err == CAKE_END ? CAKE_OK : err;
}
