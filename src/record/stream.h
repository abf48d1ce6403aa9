/* SPDX-License-Identifier: Apache-2.0
 *
 * Results into a descriptor that cannot be rewound (standard output, a pipe, a device): in the order of the
 * input, each line as soon as all before it are out. Those that must wait lie in an unlinked temporary file.
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
/* line [len], with its newline. */
cake_err cake_stream_add(cake_stream *stream, int64_t order, const char *line, size_t len);
/* The run stops before its end: what waits goes out in order, without what is missing. *n: lines that are out
 * in all. */
cake_err cake_stream_stop(cake_stream *stream, int64_t *n);
cake_err cake_stream_finish(cake_stream *stream);
void cake_stream_close(cake_stream *stream);

#endif
