/* SPDX-License-Identifier: Apache-2.0
 *
 * gzip: a sequence of members, each with its header and checksum.
 * Invariant: between members the stream is reset, and no byte of the next one has been taken.
 */
#include <stdlib.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/err.h"
#include "formats/codec.h"

enum { WINDOW = 15 + 16, LEVEL = 6, MEMORY = 8, ROOM = 64 << 10 };

typedef struct gzip {
    z_stream stream;
    bool between; /* between two members */
} gzip;

static void *unpack_open(void)
{
    gzip *g = cake_alloc(1, sizeof *g);
    if (inflateInit2(&g->stream, WINDOW) != Z_OK)
        cake_die("no memory to unpack gzip");
    g->between = true;
    return g;
}

static const char *unpack(void *state, cake_codec_flow *flow, bool *whole)
{
    gzip *g = state;
    const char *wrong = NULL;
    bool moves = true;
    /* all of a member may be taken while part of its output still waits for room */
    while (!wrong && moves && flow->n_out && (flow->n_in || !g->between)) {
        size_t in = flow->n_in < ROOM ? flow->n_in : ROOM, out = flow->n_out < ROOM ? flow->n_out : ROOM;
        g->stream.next_in = (unsigned char *)(size_t)flow->in;
        g->stream.avail_in = (unsigned)in;
        g->stream.next_out = (unsigned char *)flow->out;
        g->stream.avail_out = (unsigned)out;
        int got = inflate(&g->stream, Z_NO_FLUSH);
        flow->in += in - g->stream.avail_in;
        flow->n_in -= in - g->stream.avail_in;
        flow->out += out - g->stream.avail_out;
        flow->n_out -= out - g->stream.avail_out;
        moves = g->stream.avail_in < in || g->stream.avail_out < out;
        g->between = got == Z_STREAM_END || (g->between && !moves);
        if (got == Z_STREAM_END)
            inflateReset(&g->stream);
        else if (got != Z_OK && got != Z_BUF_ERROR)
            wrong = g->stream.msg        ? g->stream.msg
                    : got == Z_MEM_ERROR ? "no memory to unpack it"
                                         : "damaged data";
    }
    *whole = g->between;
    return wrong;
}

static void unpack_close(void *state)
{
    gzip *g = state;
    inflateEnd(&g->stream);
    free(g);
}

static void *pack_open(void)
{
    gzip *g = cake_alloc(1, sizeof *g);
    if (deflateInit2(&g->stream, LEVEL, Z_DEFLATED, WINDOW, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
        cake_die("no memory to pack with gzip");
    return g;
}

static void pack(void *state, const char *bytes, size_t len, bool last, cake_buf *out)
{
    gzip *g = state;
    unsigned char room[16 << 10];
    CAKE_ASSERT(len <= 1U << 30);
    g->stream.next_in = (unsigned char *)(size_t)bytes;
    g->stream.avail_in = (unsigned)len;
    do {
        g->stream.next_out = room;
        g->stream.avail_out = sizeof room;
        deflate(&g->stream, last ? Z_FINISH : Z_NO_FLUSH);
        cake_buf_add(out, room, sizeof room - g->stream.avail_out);
    } while (!g->stream.avail_out);
}

static void pack_close(void *state)
{
    gzip *g = state;
    deflateEnd(&g->stream);
    free(g);
}

const cake_codec cake_codec_gzip = {.name = "gzip",
                                    .ending = ".gz",
                                    .magic = "\x1F\x8B\x08",
                                    .unpack_open = unpack_open,
                                    .unpack = unpack,
                                    .unpack_close = unpack_close,
                                    .pack_open = pack_open,
                                    .pack = pack,
                                    .pack_close = pack_close};
