/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading the header of a GGUF file from its first byte on. For gguf.c.
 */
#ifndef CAKE_FORMATS_GGUF_READER_H
#define CAKE_FORMATS_GGUF_READER_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* The header as far as it was read. */
typedef struct cake_gguf_reader {
    const char *topic, *path;
    int fd;     /* -1: all there is, is in memory */
    char *data; /* [have] grows, so nothing may point into it before the end */
    size_t have, at;
    int64_t size; /* of the file */
} cake_gguf_reader;

/* Reports "FILE: byte N: ...". */
cake_err cake_gguf_fail_at(const cake_gguf_reader *reader, size_t at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Makes sure that n bytes of what `what` says follow in memory. */
cake_err cake_gguf_need(cake_gguf_reader *reader, uint64_t n, const char *what);
/* A number of so many bytes; one in memory. */
cake_err cake_gguf_read_number(cake_gguf_reader *reader, size_t bytes, const char *what, uint64_t *out);
uint64_t cake_gguf_little(const char *at, size_t bytes);
/* A string's place: an offset, since memory may still move. A name is UTF-8 without NULs, not empty. */
cake_err cake_gguf_read_text(cake_gguf_reader *reader, const char *what, size_t *begin, size_t *len);
cake_err cake_gguf_read_name(cake_gguf_reader *reader, const char *what, size_t *begin, size_t *len);

#endif
