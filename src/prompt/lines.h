/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes of a file or of memory become lines; a file that is packed, as its ending or its first bytes say
 * (gzip, zstd), is unpacked on the way.
 * Memory: the longest line that is let through, never more.
 */
#ifndef CAKE_PROMPT_LINES_H
#define CAKE_PROMPT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define CAKE_LINE_MAX ((size_t)64 << 20)

typedef struct cake_lines {
    char *name; /* owned; for messages */
    int fd;     /* -1: memory */
    bool close;
    bool begun;          /* the first bytes were looked at */
    bool started, ended; /* past a byte order mark; nothing more to read */
    bool unended;        /* the line given last had no newline behind it */
    char *data;          /* [cap] owned; [from, to) is not given out yet, [from, scanned) holds no newline */
    size_t from, scanned, to, cap;
    uint64_t dropped;   /* bytes of an over-long line that are gone already */
    int64_t size, read; /* of the file; size -1: unknown */
    cake_err failed;    /* there is no more: CAKE_END, or it was said */

    const struct cake_codec *pack; /* NULL: it is not packed */
    void *unpacker;
    char *packed; /* owned; [from, to) is not unpacked yet */
    size_t packed_from, packed_to;
    bool whole; /* the packed file may end here */
} cake_lines;

/* path "-" is standard input. Says why it cannot be opened. */
cake_err cake_lines_open(const char *path, cake_lines *lines);
void cake_lines_from_bytes(const char *bytes, size_t len, cake_lines *lines); /* copied */
/* A line without its end (LF or CRLF), valid until the next call. One longer than CAKE_LINE_MAX comes as
 * NULL, with *len its length. CAKE_END at the end; CAKE_ERR_FATAL, said, if reading failed. */
cake_err cake_lines_next(cake_lines *lines, const char **line, size_t *len);
/* What the next call would give, so far as it is there: false, where that would have to wait for more of a
 * pipe. Of the end, and where reading fails, nothing is given. */
bool cake_lines_peek(cake_lines *lines, const char **line, size_t *len);
int64_t cake_lines_used(const cake_lines *lines); /* bytes of the file that lines came from, or nearly so */
void cake_lines_close(cake_lines *lines);         /* zeros are fine */

#endif
