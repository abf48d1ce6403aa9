/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes results to a descriptor that cannot seek (standard output, a pipe, a device) in input order, each
 * line as soon as all before it are written. Lines that must wait are kept in an unlinked temporary file.
 */
#ifndef CAKE_RECORD_STREAM_H
#define CAKE_RECORD_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct cake_stream cake_stream;

/* path NULL: standard output. */
cake_err cake_stream_open(const char *path, cake_stream **out);
/* line [len] includes the newline. */
cake_err cake_stream_add(cake_stream *stream, int64_t order, const char *line, size_t len);
/* Stops before the end: writes the waiting lines in order, without the missing ones. *n: number of lines
 * written in all. */
cake_err cake_stream_stop(cake_stream *stream, int64_t *n);
cake_err cake_stream_finish(cake_stream *stream);
void cake_stream_close(cake_stream *stream);

#endif
