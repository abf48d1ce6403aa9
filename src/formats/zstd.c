/* SPDX-License-Identifier: Apache-2.0
 *
 * Zstandard: a sequence of frames. Windows have at most 128 MiB, the library's own limit, so that a file does
 * not decide how much memory it takes.
 */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "formats/codec.h"

enum { LEVEL = 3 };

/* A frame begins with its magic number, or that of a skippable frame with four free low bits (RFC 8878, 3.1).
 * The library may also read older formats, with results that depend on how their bytes are split. */
enum { MAGIC = 4 };
static const unsigned char FRAME[MAGIC] = {0x28, 0xB5, 0x2F, 0xFD}, SKIPPED[MAGIC] = {0x50, 0x2A, 0x4D, 0x18};

typedef struct unpacker {
    ZSTD_DCtx *context;
    bool between; /* between two frames */
    size_t n_magic;
    unsigned char magic[MAGIC]; /* of the frame being read */
} unpacker;

static void *unpack_open(void)
{
    unpacker *u = cake_alloc(1, sizeof *u);
    *u = (unpacker){.context = ZSTD_createDCtx(), .between = true};
    if (!u->context)
        cake_die("no memory to unpack zstd");
    return u;
}

/* Whether the frame's first bytes are a known magic number, or may become one. */
static bool may_begin(unpacker *u, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        u->magic[u->n_magic++] = (unsigned char)bytes[i];
    unsigned char first = u->magic[0];
    u->magic[0] = (first & 0xF0) == SKIPPED[0] ? SKIPPED[0] : first;
    return !memcmp(u->magic, FRAME, u->n_magic) || !memcmp(u->magic, SKIPPED, u->n_magic);
}

static const char *unpack(void *state, cake_codec_flow *flow, bool *whole)
{
    unpacker *u = state;
    ZSTD_inBuffer in = {flow->in, flow->n_in, 0};
    ZSTD_outBuffer out = {flow->out, flow->n_out, 0};
    const char *wrong = NULL;
    /* a frame may be taken whole while part of its output still waits for room */
    while ((in.pos < flow->n_in || !u->between) && out.pos < out.size && !wrong) {
        size_t taken = in.pos, given = out.pos, unread = flow->n_in - in.pos;
        size_t magic = MAGIC - u->n_magic < unread ? MAGIC - u->n_magic : unread;
        if (!may_begin(u, flow->in + in.pos, magic)) {
            wrong = "not a frame of Zstandard (RFC 8878)";
            break;
        }
        in.size = magic ? in.pos + magic : flow->n_in;
        size_t left = ZSTD_decompressStream(u->context, &out, &in);
        wrong = ZSTD_isError(left) ? ZSTD_getErrorName(left) : NULL;
        u->between = left == 0;
        if (u->between)
            u->n_magic = 0;
        if (in.pos == taken && out.pos == given)
            break;
    }
    flow->in += in.pos;
    flow->n_in -= in.pos;
    flow->out += out.pos;
    flow->n_out -= out.pos;
    *whole = u->between;
    return wrong;
}

static void unpack_close(void *state)
{
    unpacker *u = state;
    ZSTD_freeDCtx(u->context);
    free(u);
}

static void *pack_open(void)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();
    if (!context)
        cake_die("no memory to pack with zstd");
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    return context;
}

static void pack(void *state, const char *bytes, size_t len, bool last, cake_buf *out)
{
    char room[16 << 10];
    ZSTD_inBuffer in = {bytes, len, 0};
    size_t left;
    do {
        ZSTD_outBuffer to = {room, sizeof room, 0};
        left = ZSTD_compressStream2(state, &to, &in, last ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left))
            cake_die("zstd: %s", ZSTD_getErrorName(left));
        cake_buf_add(out, room, to.pos);
    } while (last ? left > 0 : in.pos < in.size);
}

static void pack_close(void *state)
{
    ZSTD_freeCCtx(state);
}

const cake_codec cake_codec_zstd = {.name = "zstd",
                                    .ending = ".zst",
                                    .magic = "\x28\xB5\x2F\xFD",
                                    .unpack_open = unpack_open,
                                    .unpack = unpack,
                                    .unpack_close = unpack_close,
                                    .pack_open = pack_open,
                                    .pack = pack,
                                    .pack_close = pack_close};
