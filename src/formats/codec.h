/* SPDX-License-Identifier: Apache-2.0
 *
 * Compressed files: streaming codecs, chosen by the ending of the file's name. Each format has one const row
 * of functions, and only its own file includes the library.
 */
#ifndef CAKE_FORMATS_CODEC_H
#define CAKE_FORMATS_CODEC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Remaining input and remaining space for output; a call advances both. */
typedef struct cake_codec_flow {
    const char *in; /* [n_in] */
    size_t n_in;
    char *out; /* [n_out] */
    size_t n_out;
} cake_codec_flow;

typedef struct cake_codec {
    const char *name, *ending, *magic; /* "gzip", ".gz", the first bytes of its files */
    void *(*unpack_open)(void);
    /* Runs until the input is used up or the output is full. *whole: a file may end here. Returns NULL, or
     * the error in the bytes from flow->in on. */
    const char *(*unpack)(void *state, cake_codec_flow *flow, bool *whole);
    void (*unpack_close)(void *state);
    void *(*pack_open)(void);
    void (*pack)(void *state, const char *bytes, size_t len, bool last, cake_buf *out); /* appends to out */
    void (*pack_close)(void *state);
} cake_codec;

/* By the ending of a name; NULL: not compressed. */
const cake_codec *cake_codec_of(const char *path);
/* By the first bytes of a file, whatever its name. */
const cake_codec *cake_codec_detect(const char *head, size_t n);

extern const cake_codec cake_codec_gzip, cake_codec_zstd;

#endif
