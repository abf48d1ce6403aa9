/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that are packed, by the ending of their name: bytes enter in pieces of any size, and others leave. A
 * row of const functions for each form, with the one door to its library.
 */
#ifndef CAKE_FORMATS_CODEC_H
#define CAKE_FORMATS_CODEC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* What is still to be taken, and room that is still to be filled: both move. */
typedef struct cake_codec_flow {
    const char *in; /* [n_in] */
    size_t n_in;
    char *out; /* [n_out] */
    size_t n_out;
} cake_codec_flow;

typedef struct cake_codec {
    const char *name, *ending, *magic; /* "gzip", ".gz", what its files begin with */
    void *(*unpack_open)(void);
    /* Goes on until in is taken or out is full. *whole: what was taken ends where a packed file may end.
     * NULL, or what is wrong with the bytes from flow->in on. */
    const char *(*unpack)(void *state, cake_codec_flow *flow, bool *whole);
    void (*unpack_close)(void *state);
    void *(*pack_open)(void);
    void (*pack)(void *state, const char *bytes, size_t len, bool last, cake_buf *out); /* appended */
    void (*pack_close)(void *state);
} cake_codec;

/* Of a name with its ending; NULL: it is not packed. */
const cake_codec *cake_codec_of(const char *path);
/* Of the first bytes of a file, whatever its name. */
const cake_codec *cake_codec_detect(const char *head, size_t n);

extern const cake_codec cake_codec_gzip, cake_codec_zstd;

#endif
