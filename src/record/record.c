/* SPDX-License-Identifier: Apache-2.0
 *
 * Finished requests enter, a file or standard output has them in the order of the input. Called by run on rank 0.
 * Invariant: a record that was added successfully is in RESULTS.partial (or on its way through the stream).
 */
#include "record/record.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/log.h"
#include "record/line.h"
#include "record/partial.h"
#include "record/stream.h"

struct cake_recorder {
    cake_record_options options;
    char *path, *model; /* owned copies of what options points to */
    bool txt;
    cake_partial *partial; /* one of the two */
    cake_stream *stream;
    int64_t failed;
    cake_buf line, plain;
};

static cake_err guess(const char *path, cake_record_format *format)
{
    if (*format != CAKE_RECORD_AUTO)
        return CAKE_OK;
    const char *base = path ? strrchr(path, '/') : NULL;
    const char *ending = path ? strrchr(base ? base : path, '.') : NULL;
    *format = ending && !strcasecmp(ending, ".txt") ? CAKE_RECORD_TXT : CAKE_RECORD_JSONL;
    if (ending && (!strcasecmp(ending, ".h5") || !strcasecmp(ending, ".hdf5")))
        return cake_fail_usage("%s: this version writes no HDF5; expected .jsonl or .txt", path);
    return CAKE_OK;
}

/* Regular files get a .partial beside them; a device or a pipe can only be streamed to. */
static cake_err open_path(cake_recorder *recorder, const char *path, bool force)
{
    struct stat info;
    if (!path || !strcmp(path, "-"))
        return cake_stream_open(NULL, &recorder->stream);
    if (!path[0])
        return cake_fail_usage("the name of the output file is empty");
    bool there = !stat(path, &info);
    if (there && S_ISDIR(info.st_mode))
        return cake_fail("record", "%s: is a directory; expected the name of a file", path);
    /* /dev/stdout may lead to a regular file, and the link is not ours to replace */
    if (there && (!S_ISREG(info.st_mode) || !strncmp(path, "/dev/", 5)))
        return cake_stream_open(path, &recorder->stream);
    return cake_partial_open(path, force, &recorder->partial);
}

cake_err cake_record_open(const cake_record_options *options, cake_recorder **out)
{
    cake_record_format format = options->format;
    cake_err err = guess(options->path, &format);
    if (err)
        return err;
    /* a closed pipe and a file at its limit are errors that writing reports, not signals that end all unsaid */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    cake_recorder *recorder = cake_alloc(1, sizeof *recorder);
    recorder->options = *options;
    recorder->txt = format == CAKE_RECORD_TXT;
    if (options->path)
        recorder->options.path = recorder->path = cake_copy(options->path, strlen(options->path));
    if (options->model)
        recorder->options.model = recorder->model = cake_copy(options->model, strlen(options->model));
    err = open_path(recorder, recorder->path, options->force);
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

cake_err cake_record_add(cake_recorder *recorder, const cake_record *record)
{
    cake_buf *line = &recorder->line;
    cake_buf_cut(line, 0);
    cake_record_line(recorder, record, line);
    if (record->fault && recorder->txt) /* a .txt file has no place for it */
        cake_log(CAKE_WARN, "record", "request %lld: %s", (long long)record->index, record->fault->message);
    if (recorder->stream && recorder->txt) {
        cake_buf_cut(&recorder->plain, 0);
        cake_line_plain(line->data, line->len, &recorder->plain);
        line = &recorder->plain;
    }
    cake_buf_addc(line, '\n');
    cake_err err = recorder->stream
                       ? cake_stream_add(recorder->stream, record->order, line->data, line->len)
                       : cake_partial_append(recorder->partial, record->order, line->data, line->len);
    if (!err && record->fault)
        recorder->failed++;
    return err;
}

bool cake_record_is_text(const cake_recorder *recorder)
{
    return recorder->txt;
}

int64_t cake_record_failed(const cake_recorder *recorder)
{
    return recorder->failed;
}

cake_err cake_record_finish(cake_recorder *recorder)
{
    if (recorder->stream)
        return cake_stream_finish(recorder->stream);
    return cake_partial_finish(recorder->partial, recorder->txt ? cake_line_plain : NULL);
}

void cake_record_close(cake_recorder *recorder)
{
    if (!recorder)
        return;
    cake_partial_close(recorder->partial);
    cake_stream_close(recorder->stream);
    cake_buf_free(&recorder->line);
    cake_buf_free(&recorder->plain);
    free(recorder->path);
    free(recorder->model);
    free(recorder);
}
