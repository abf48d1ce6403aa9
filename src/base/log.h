/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages on standard error: "cake-mpi: error: model: FILE: what was found; what to do".
 * Rank 0 says everything up to its level, the other ranks from warnings on, with rank and host.
 * A topic is a folder's noun ("model", "token", "link", ...).
 */
#ifndef CAKE_BASE_LOG_H
#define CAKE_BASE_LOG_H

#include <stdbool.h>

#include "base/buf.h"

typedef enum cake_level { CAKE_ERROR, CAKE_WARN, CAKE_INFO, CAKE_DEBUG } cake_level;

void cake_log(cake_level level, const char *topic, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same from any thread, also on the way out: no memory is asked for, and it goes past a capture. What is
 * longer than a thousand bytes is cut. */
void cake_log_now(cake_level level, const char *topic, const char *text);
cake_level cake_log_level(cake_level level); /* default CAKE_INFO; returns what it was */
/* "info", or "warn,place=debug": the level, and that of single topics. NULL: it holds; else what is wrong,
 * and nothing has changed. */
const char *cake_log_levels(const char *text);
/* Only errors, whatever the levels, while hushed. Returns whether it was. */
bool cake_log_hush(bool hushed);
bool cake_log_wants(cake_level level, const char *topic); /* whether such a message of this rank is said */
/* Messages quote foreign bytes: what could command a terminal is shown as its number, as \x0a. */
void cake_log_escape(cake_buf *text);
void cake_log_rank(int rank, const char *host); /* default rank 0 */
/* Whether a progress bar stands on the terminal's line: the next message wipes it. Returns whether one
 * did. */
bool cake_log_bar(bool stands);
/* Messages go there; NULL: back to standard error. Returns where they went. */
cake_buf *cake_log_capture(cake_buf *into);
/* Waits, a second at most, until who reads standard error through a pipe has read it: a launcher may throw
 * away what it has not read of a rank that aborts. */
void cake_log_heard(void);

#endif
