/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines enter in any order and leave in that of the input. Invariant: everything before `next` is written, and
 * everything in places waits in the spool.
 */
#include "record/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "record/bytes.h"
#include "record/places.h"

#define BLOCK ((size_t)1 << 20)

struct cake_stream {
    const char *name; /* borrowed */
    int fd;
    bool close, broken;
    int64_t next;
    FILE *spool;
    int64_t spool_size;
    cake_places places;
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
    stream->close = path != NULL;
    *out = stream;
    return CAKE_OK;
}

static cake_err broken(cake_stream *stream, const char *name, int why)
{
    stream->broken = true;
    return cake_fail("record", "%s: cannot be written: %s; the first %lld results are out", name,
                     strerror(why), (long long)stream->next);
}

static cake_err flush(cake_stream *stream, int64_t upto)
{
    if (!cake_bytes_write(stream->fd, stream->block.data, stream->block.len))
        return broken(stream, stream->name, errno);
    cake_buf_cut(&stream->block, 0);
    stream->next = upto;
    return CAKE_OK;
}

static cake_err lay_aside(cake_stream *stream, int64_t order, const char *line, size_t len)
{
    if (!stream->spool && !(stream->spool = tmpfile()))
        return broken(stream, "a temporary file in " P_tmpdir, errno);
    if (!cake_bytes_write_at(fileno(stream->spool), line, len, stream->spool_size))
        return broken(stream, "a temporary file in " P_tmpdir, errno);
    cake_places_set(&stream->places, order, (cake_place){.offset = stream->spool_size, .len = (int64_t)len});
    stream->spool_size += (int64_t)len;
    return CAKE_OK;
}

/* Writes the lines from `from` on that have waited for the one before them. */
static cake_err catch_up(cake_stream *stream, int64_t from)
{
    cake_err err = CAKE_OK;
    cake_place place;
    char *line = NULL;
    for (; (place = cake_places_get(&stream->places, from)).len; from++) {
        line = cake_grow(line, (size_t)place.len, 1);
        if (!cake_bytes_read_at(fileno(stream->spool), line, (size_t)place.len, place.offset)) {
            err = broken(stream, "a temporary file in " P_tmpdir, errno);
            break;
        }
        cake_buf_add(&stream->block, line, (size_t)place.len);
        cake_places_drop(&stream->places, from);
        if (stream->block.len >= BLOCK && (err = flush(stream, from + 1)))
            break;
    }
    free(line);
    if (err)
        return err;
    if (stream->spool_size && !stream->places.n) { /* nothing waits: its room is given back */
        stream->spool_size = 0;
        if (ftruncate(fileno(stream->spool), 0))
            return broken(stream, "a temporary file in " P_tmpdir, errno);
    }
    return flush(stream, from);
}

cake_err cake_stream_add(cake_stream *stream, int64_t order, const char *line, size_t len)
{
    if (stream->broken)
        return CAKE_ERR_FATAL;
    CAKE_ASSERT(order >= stream->next);
    if (order > stream->next)
        return lay_aside(stream, order, line, len);
    cake_buf_add(&stream->block, line, len);
    return catch_up(stream, order + 1);
}

cake_err cake_stream_stop(cake_stream *stream, int64_t *n)
{
    cake_err err = stream->broken ? CAKE_ERR_FATAL : CAKE_OK;
    *n = stream->next + stream->places.n;
    for (int64_t at = stream->next; !err && stream->places.n; at++)
        if (cake_places_get(&stream->places, at).len)
            err = catch_up(stream, at);
    return err;
}

cake_err cake_stream_finish(cake_stream *stream)
{
    if (stream->broken)
        return CAKE_ERR_FATAL;
    if (stream->places.n)
        return cake_fail("record", "%s: request %lld has no result; %lld results behind it are lost",
                         stream->name, (long long)stream->next, (long long)stream->places.n);
    return CAKE_OK;
}

void cake_stream_close(cake_stream *stream)
{
    if (!stream)
        return;
    if (stream->close)
        close(stream->fd);
    if (stream->spool)
        fclose(stream->spool);
    cake_places_free(&stream->places);
    cake_buf_free(&stream->block);
    free(stream);
}
