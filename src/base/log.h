/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages on standard error: "cake-mpi: error: model: FILE: what was found; what to do".
 * Rank 0 says everything up to its level, the other ranks from warnings on, with rank and host.
 * A topic is a folder's noun ("model", "token", "link", ...).
 */
#ifndef CAKE_BASE_LOG_H
#define CAKE_BASE_LOG_H

#include "base/buf.h"

typedef enum cake_level { CAKE_ERROR, CAKE_WARN, CAKE_INFO, CAKE_DEBUG } cake_level;

void cake_log(cake_level level, const char *topic, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* An error said on the way out: at once, whatever the level, and without asking for memory. */
void cake_log_last(const char *text);
cake_level cake_log_level(cake_level level);    /* default CAKE_INFO; returns what it was */
void cake_log_rank(int rank, const char *host); /* default rank 0 */
void cake_log_line(void (*clear)(void));        /* called before a message: wipes a progress bar */
/* Messages go there; NULL: back to standard error. Returns where they went. */
cake_buf *cake_log_capture(cake_buf *into);

#endif
