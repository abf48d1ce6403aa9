/* SPDX-License-Identifier: Apache-2.0
 *
 * In: lines in any order. Out: the same in input order. Invariant: everything before `next` is written, and
 * everything in `lines` waits in the spool file. The spool is rewritten when most of it has been output;
 * otherwise it would grow to the size of all results as long as anything waits.
 */
#include "record/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/io.h"
#include "record/line_index.h"

#define BLOCK ((size_t)1 << 20)
#define SMALL ((int64_t)16 << 20) /* smaller spools are not rewritten */

struct cake_stream {
    const char *name; /* borrowed */
    int fd;
    bool close, broken;
    int64_t next;
    int spool; /* -1: not needed so far */
    char where[512];
    int64_t spool_size, waiting; /* bytes in the file; of these, still waiting */
    int64_t renewed_at;          /* min size for the next rewrite */
    cake_line_index lines;
    cake_buf block;
};

cake_err cake_stream_open(const char *path, cake_stream **out)
{
    int fd = path ? open(path, O_WRONLY | O_CLOEXEC) : STDOUT_FILENO;
    if (fd < 0)
        return cake_fail("record", "%s: cannot be opened: %s", path, strerror(errno));
    cake_stream *stream = cake_alloc(1, sizeof *stream);
    stream->name = path ? path : "standard output";
    stream->fd = fd;
    stream->spool = -1;
    stream->renewed_at = SMALL;
    stream->close = path != NULL;
    *out = stream;
    return CAKE_OK;
}

static cake_err broken(cake_stream *stream, int why)
{
    stream->broken = true;
    char written[48] = "no result was";
    if (stream->next)
        snprintf(written, sizeof written, "%lld result%s", (long long)stream->next,
                 stream->next == 1 ? " was" : "s were");
    return cake_fail("output", "%s: cannot be written: %s; %s written", stream->name, strerror(why), written);
}

static cake_err spool_failed(const cake_stream *stream, int why)
{
    return cake_fail("record",
                     "results that wait for request %lld cannot be written to the temporary file %s: %s; set "
                     "TMPDIR=DIR to move it, or use -o FILE, which needs none",
                     (long long)stream->next, stream->where, strerror(why));
}

static cake_err flush(cake_stream *stream, int64_t upto)
{
    if (!cake_io_write(stream->fd, stream->block.data, stream->block.len))
        return broken(stream, errno);
    cake_buf_cut(&stream->block, 0);
    stream->next = upto;
    return CAKE_OK;
}

/* Copies the waiting lines in order into fd. */
static bool copy_waiting(const cake_stream *stream, int fd)
{
    int64_t size = 0;
    bool done = true;
    cake_line_span span;
    char *line = NULL;
    for (int64_t at = stream->next; done && size < stream->waiting; at++) {
        if (!(span = cake_line_index_get(&stream->lines, at)).len)
            continue;
        line = cake_grow(line, (size_t)span.len, 1);
        done = cake_io_read_at(stream->spool, line, (size_t)span.len, span.offset) &&
               cake_io_write_at(fd, line, (size_t)span.len, size);
        size += span.len;
    }
    free(line);
    return done;
}

/* Rewrites the spool with the waiting lines only. Without space for both copies, the old one is kept until it
 * has doubled. */
static void renew(cake_stream *stream)
{
    char where[sizeof stream->where];
    int fd = cake_io_spool(NULL, where, sizeof where);
    if (fd < 0 || !copy_waiting(stream, fd)) {
        stream->renewed_at = 2 * stream->spool_size;
        if (fd >= 0)
            close(fd);
        return;
    }
    int64_t size = 0;
    for (int64_t at = stream->next; size < stream->waiting; at++) {
        cake_line_span span = cake_line_index_get(&stream->lines, at);
        if (!span.len)
            continue;
        cake_line_index_drop(&stream->lines, at);
        cake_line_index_set(&stream->lines, at, (cake_line_span){.offset = size, .len = span.len});
        size += span.len;
    }
    close(stream->spool);
    stream->spool = fd;
    stream->spool_size = size;
    stream->renewed_at = SMALL;
    memcpy(stream->where, where, sizeof where);
}

static cake_err spool_line(cake_stream *stream, int64_t order, const char *line, size_t len)
{
    if (stream->spool < 0 && (stream->spool = cake_io_spool(NULL, stream->where, sizeof stream->where)) < 0)
        return spool_failed(stream, errno);
    if (!cake_io_write_at(stream->spool, line, len, stream->spool_size))
        return spool_failed(stream, errno);
    cake_line_index_set(&stream->lines, order,
                        (cake_line_span){.offset = stream->spool_size, .len = (int64_t)len});
    stream->spool_size += (int64_t)len;
    stream->waiting += (int64_t)len;
    if (stream->spool_size > stream->renewed_at && stream->spool_size / 4 > stream->waiting)
        renew(stream);
    return CAKE_OK;
}

/* Writes the lines from `from` on, up to the first that is missing. */
static cake_err catch_up(cake_stream *stream, int64_t from)
{
    cake_err err = CAKE_OK;
    cake_line_span span;
    char *line = NULL;
    for (; !err && (span = cake_line_index_get(&stream->lines, from)).len; from++) {
        line = cake_grow(line, (size_t)span.len, 1);
        if (!cake_io_read_at(stream->spool, line, (size_t)span.len, span.offset)) {
            stream->broken = true;
            err = spool_failed(stream, errno);
            break;
        }
        cake_buf_add(&stream->block, line, (size_t)span.len);
        cake_line_index_drop(&stream->lines, from);
        stream->waiting -= span.len;
        if (stream->block.len >= BLOCK)
            err = flush(stream, from + 1);
    }
    free(line);
    if (!err && stream->spool_size && !stream->lines.n) { /* nothing waits: free the disk space */
        stream->spool_size = 0;
        if (ftruncate(stream->spool, 0))
            err = spool_failed(stream, errno);
    }
    return err ? err : flush(stream, from);
}

cake_err cake_stream_add(cake_stream *stream, int64_t order, const char *line, size_t len)
{
    if (stream->broken)
        return CAKE_ERR_FATAL;
    CAKE_ASSERT(order >= stream->next);
    if (order > stream->next)
        return spool_line(stream, order, line, len);
    cake_buf_add(&stream->block, line, len);
    return catch_up(stream, order + 1);
}

cake_err cake_stream_stop(cake_stream *stream, int64_t *n)
{
    cake_err err = stream->broken ? CAKE_ERR_FATAL : CAKE_OK;
    *n = stream->next + stream->lines.n;
    for (int64_t at = stream->next; !err && stream->lines.n; at++)
        if (cake_line_index_get(&stream->lines, at).len)
            err = catch_up(stream, at);
    return err;
}

cake_err cake_stream_finish(cake_stream *stream)
{
    if (stream->broken)
        return CAKE_ERR_FATAL;
    if (stream->lines.n)
        return cake_fail("record", "%s: request %lld has no result; %lld later results are lost",
                         stream->name, (long long)stream->next, (long long)stream->lines.n);
    return CAKE_OK;
}

void cake_stream_close(cake_stream *stream)
{
    if (!stream)
        return;
    if (stream->close)
        close(stream->fd);
    if (stream->spool >= 0)
        close(stream->spool);
    cake_line_index_free(&stream->lines);
    cake_buf_free(&stream->block);
    free(stream);
}
