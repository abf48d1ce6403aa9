/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines from a file or from memory. A file that is compressed (gzip, zstd), by its ending or its first bytes,
 * is decompressed on the way. Memory: the longest permitted line, never more.
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
    bool begun;          /* the first bytes were examined */
    bool started, ended; /* past the byte order mark; at the end of input */
    bool unended;        /* the last line returned had no newline */
    char *data;          /* [cap] owned; [from, to) is not returned yet, [from, scanned) has no newline */
    size_t from, scanned, to, cap;
    uint64_t dropped;   /* bytes of an over-long line that were dropped */
    int64_t size, read; /* of the file; size -1: unknown */
    cake_err failed;    /* no more lines: CAKE_END, or an error that was logged */

    const struct cake_codec *pack; /* NULL: not compressed */
    void *unpacker;
    char *packed; /* owned; [from, to) is not decompressed yet */
    size_t packed_from, packed_to;
    bool whole; /* the compressed file may end here */
} cake_lines;

/* path "-" is standard input. Logs why it cannot be opened. */
cake_err cake_lines_open(const char *path, cake_lines *lines);
void cake_lines_from_bytes(const char *bytes, size_t len, cake_lines *lines); /* copied */
/* A line without its end (LF or CRLF), valid until the next call. One longer than CAKE_LINE_MAX is NULL, with
 * *len its length. CAKE_END at the end; CAKE_ERR_FATAL, already logged, if reading failed. */
cake_err cake_lines_next(cake_lines *lines, const char **line, size_t *len);
/* Shows as much of the next line as is at hand; false if the next call would have to wait for a pipe. Shows
 * nothing at the end or if reading fails. */
bool cake_lines_peek(cake_lines *lines, const char **line, size_t *len);
int64_t cake_lines_used(const cake_lines *lines); /* bytes of the file used so far, approximately */
void cake_lines_close(cake_lines *lines);         /* a zeroed struct is fine */

#endif
