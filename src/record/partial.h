/* SPDX-License-Identifier: Apache-2.0
 *
 * RESULTS.partial: lines in the order they are finished, and how it becomes RESULTS.
 */
#ifndef CAKE_RECORD_PARTIAL_H
#define CAKE_RECORD_PARTIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

typedef struct cake_partial cake_partial;

/* results is the path of RESULTS. Says why not: it exists, a partial one of an earlier run exists, another run
 * writes it, the directory cannot be written to. */
cake_err cake_partial_open(const char *results, bool force, cake_partial **out);
/* line [len] with its newline. On failure the file ends with the last whole line. */
cake_err cake_partial_append(cake_partial *partial, int64_t order, const char *line, size_t len);
/* RESULTS appears: every line by ascending order, put through convert if that is not NULL (appends to
 * out what stands for the line). */
cake_err cake_partial_finish(cake_partial *partial,
                             void (*convert)(const char *line, size_t len, cake_buf *out));
/* Closes; a partial file without any line goes. */
void cake_partial_close(cake_partial *partial);

#endif
