/* SPDX-License-Identifier: Apache-2.0
 *
 * In: finished requests. Out: a file or standard output in input order. Runs on rank 0. Invariant: a record
 * that was added successfully is in RESULTS.partial or on its way through the stream.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/log.h"
#include "formats/h5.h"
#include "record/format.h"
#include "record/hdf5.h"
#include "record/recorder.h"

static const struct {
    const char *ending, *form;
    cake_record_format format;
} endings[] = {{".txt", "txt", CAKE_RECORD_TXT},
               {".h5", "h5", CAKE_RECORD_HDF5},
               {".hdf5", "h5", CAKE_RECORD_HDF5},
               {"", "jsonl", CAKE_RECORD_JSONL}};

/* Index in endings[] of path's extension; the last entry if there is none. */
static size_t ending_of(const char *path)
{
    const cake_codec *pack = cake_codec_of(path);
    char *stem = cake_copy(path ? path : "", path ? strlen(path) - (pack ? strlen(pack->ending) : 0) : 0);
    const char *base = strrchr(stem, '/');
    const char *ending = strrchr(base ? base : stem, '.');
    size_t i = 0;
    while (endings[i].ending[0] && (!ending || strcasecmp(ending, endings[i].ending) != 0))
        i++;
    free(stem);
    return i;
}

const char *cake_record_form(const char *path)
{
    return endings[ending_of(path)].form;
}

static cake_err open_journal(cake_recorder *r)
{
    const cake_record_options *o = &r->options;
    char *identity = (char *)(o->identity ? o->identity : "{}"), *model = (char *)(o->model ? o->model : "");
    cake_journal_header header = {identity, model, o->created, o->job, false};
    cake_err err = cake_journal_writer_open(r, &header);
    if (err)
        return err;
    r->options.created = r->journal.header.created;
    r->options.job = r->journal.header.job;
    if (o->model) {
        free(r->model);
        r->options.model = r->model = cake_copy(r->journal.header.model, strlen(r->journal.header.model));
    }
    return CAKE_OK;
}

/* Refuses what a stream cannot do. */
static cake_err open_stream(cake_recorder *r, const char *path)
{
    if (r->options.resume == CAKE_RESUME_MUST || r->options.retry)
        return cake_fail_usage("%s: output that is not a file cannot be resumed: give -o FILE",
                               r->options.retry ? "--retry-errors" : "--resume must");
    if (r->hdf5)
        return cake_fail_usage("%s: HDF5 cannot be streamed; expected the name of a file", path);
    if (r->pack)
        return cake_fail_usage("%s: compressed results cannot be streamed; expected the name of a file",
                               path);
    return cake_stream_open(path, &r->stream);
}

bool cake_record_streams(const char *path)
{
    struct stat info;
    if (!path || !strcmp(path, "-"))
        return true;
    /* /dev/stdout may lead to a regular file, but the link must not be replaced */
    return !stat(path, &info) && (!S_ISREG(info.st_mode) || !strncmp(path, "/dev/", 5));
}

/* Regular files get a .partial; devices and pipes are streamed to. */
static cake_err open_path(cake_recorder *recorder, const char *path)
{
    struct stat info;
    if (path && !path[0])
        return cake_fail_usage("the name of the output file is empty");
    if (path && !stat(path, &info) && S_ISDIR(info.st_mode))
        return cake_fail("record", "%s: is a directory; expected the name of a file", path);
    if (cake_record_streams(path))
        return open_stream(recorder, path && strcmp(path, "-") ? path : NULL);
    if (!lstat(path, &info) &&
        S_ISLNK(info.st_mode)) /* the final rename would replace the link, not its target */
        return cake_fail("record", "%s: is a symbolic link; give -o the name of its target", path);
    return open_journal(recorder);
}

cake_err cake_record_open(const cake_record_options *options, cake_recorder **out)
{
    cake_record_format format = options->format ? options->format : endings[ending_of(options->path)].format;
    cake_err err = format == CAKE_RECORD_HDF5 ? cake_h5_known(options->path) : CAKE_OK;
    if (!err && format == CAKE_RECORD_HDF5 && cake_codec_of(options->path))
        err = cake_fail_usage("%s: HDF5 has its own compression; expected .h5 alone", options->path);
    if (err)
        return err;
    /* A closed pipe or a file size limit must be a write error, not a signal that ends the process
     * silently. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    cake_recorder *recorder = cake_alloc(1, sizeof *recorder);
    recorder->options = *options;
    recorder->fd = -1;
    recorder->txt = format == CAKE_RECORD_TXT;
    recorder->hdf5 = format == CAKE_RECORD_HDF5;
    recorder->pack = cake_codec_of(options->path);
    if (options->command)
        recorder->options.command = recorder->command = cake_copy(options->command, strlen(options->command));
    if (options->path)
        recorder->options.path = recorder->results = cake_copy(options->path, strlen(options->path));
    if (options->model)
        recorder->options.model = recorder->model = cake_copy(options->model, strlen(options->model));
    err = open_path(recorder, recorder->results);
    if (err) {
        cake_record_close(recorder);
        return err;
    }
    *out = recorder;
    return CAKE_OK;
}

void cake_record_line(const cake_recorder *recorder, const cake_record *record, cake_buf *out)
{
    if (record->form == CAKE_FORM_SIMPLE)
        cake_line_simple(&recorder->options, record, out);
    else
        cake_line_openai(&recorder->options, record, out);
}

cake_err cake_record_add_line(cake_recorder *recorder, cake_entry entry, const char *line, size_t len)
{
    if (!recorder->stream)
        return cake_journal_writer_append(recorder, entry, line, len);
    cake_buf *plain = &recorder->plain;
    if (recorder->txt) {
        cake_buf_cut(plain, 0);
        if (!cake_line_txt(line, len - 1, plain))
            return cake_fail("record", "a result is not JSON: it cannot be converted to text");
        cake_buf_addc(plain, '\n');
        line = plain->data;
        len = plain->len;
    }
    cake_err err = cake_stream_add(recorder->stream, entry.order, line, len);
    recorder->journal.failed += !err && entry.failed;
    return err;
}

cake_err cake_record_add(cake_recorder *recorder, const cake_record *record)
{
    cake_buf *line = &recorder->line;
    cake_record kept = *record;
    cake_buf_cut(line, 0);
    kept.base64 |= recorder->hdf5; /* read faster than digits */
    cake_record_line(recorder, &kept, line);
    if (recorder->hdf5)
        cake_hdf5_add_rest(record, line);
    char place[CAKE_REQUEST_NAME];
    if (record->fault && recorder->txt) /* .txt files have no error records */
        cake_log(CAKE_WARN, "record", "%s: %s",
                 cake_request_name(record->form, record->index, record->id, place), record->fault->message);
    cake_buf_addc(line, '\n');
    return cake_record_add_line(recorder,
                                (cake_entry){record->order, record->sum, record->fault != NULL, true},
                                line->data, line->len);
}

cake_err cake_record_stop(cake_recorder *recorder)
{
    int64_t n;
    cake_err err = recorder->stream ? cake_stream_stop(recorder->stream, &n) : cake_record_flush(recorder);
    if (err)
        return err;
    if (recorder->stream)
        cake_log(CAKE_INFO, "record", "wrote %lld result%s; a stream cannot be resumed: use -o FILE for that",
                 (long long)n, cake_plural(n));
    else {
        n = recorder->fd < 0 ? recorder->resumed : recorder->journal.lines.n;
        cake_log(CAKE_INFO, "record", "%s.partial has %lld result%s; the same command resumes from there",
                 recorder->results, (long long)n, cake_plural(n));
    }
    return CAKE_OK;
}

bool cake_record_wants_prompt(const cake_recorder *recorder)
{
    return recorder && recorder->hdf5;
}

bool cake_record_is_text(const cake_recorder *recorder)
{
    return recorder->txt;
}

cake_err cake_record_finish(cake_recorder *recorder)
{
    return recorder->stream ? cake_stream_finish(recorder->stream) : cake_journal_writer_finish(recorder);
}

cake_record_cost cake_record_costs(const cake_recorder *recorder)
{
    if (!recorder || recorder->stream)
        return (cake_record_cost){-1, -1, -1};
    cake_record_cost cost = recorder->cost;
    cost.sync = cake_fsync_thread_cpu(recorder->sync);
    return cost;
}

void cake_record_close(cake_recorder *recorder)
{
    if (!recorder)
        return;
    cake_journal_writer_close(recorder);
    cake_stream_close(recorder->stream);
    cake_buf_free(&recorder->line);
    cake_buf_free(&recorder->plain);
    free(recorder->results);
    free(recorder->model);
    free(recorder->command);
    free(recorder);
}
