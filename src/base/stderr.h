/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole lines on standard error, from any thread and without allocation, so that a process that runs out of
 * memory can still report it. For messages use base/log.h.
 */
#ifndef CAKE_BASE_STDERR_H
#define CAKE_BASE_STDERR_H

#include <stdbool.h>
#include <stddef.h>

void cake_stderr_rank(int rank, const char *host); /* default rank 0 */
const char *cake_stderr_origin(void);              /* "rank 3 on node7: "; "" on rank 0 */
/* Writes a line that ends with a newline. Ignores errors: a closed or full standard error is not worth
 * stopping the run. */
void cake_stderr_write(const char *line, size_t len);
/* Writes "cake-mpi: ORIGIN: LEVEL: TOPIC: TEXT". level includes its ": "; topic may be NULL. Text beyond a
 * thousand bytes is cut off, control characters become question marks. */
void cake_stderr_message(const char *level, const char *topic, const char *text);
/* Sets whether a progress bar stands on the terminal's line; the next line wipes it. Returns the previous
 * state. */
bool cake_stderr_bar(bool stands);
/* Waits for at most a second until the reader of standard error, if it is a pipe, has read it: a launcher may
 * discard what it has not read of a rank that aborts. */
void cake_stderr_wait_read(void);

#endif
