/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages on standard error: "cake-mpi: error: model: FILE: what was found; what to do".
 * Rank 0 logs everything up to its level, the other ranks only warnings and errors, with rank and host.
 * A topic is the folder that speaks ("model", "planner", "link", ...). base and formats speak for their
 * callers, under their topics, and commands about the cache of models for hub.
 */
#ifndef CAKE_BASE_LOG_H
#define CAKE_BASE_LOG_H

#include <stdbool.h>

#include "base/buf.h"

typedef enum cake_level { CAKE_ERROR, CAKE_WARN, CAKE_INFO, CAKE_DEBUG } cake_level;

void cake_log(cake_level level, const char *topic, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* A message from any thread, also during a shutdown: allocates nothing and bypasses the capture. Text beyond
 * a thousand bytes is cut off. */
void cake_log_now(cake_level level, const char *topic, const char *text);
cake_level cake_log_level(cake_level level); /* default CAKE_INFO; returns the previous level */
/* Sets the levels of "info" or "warn,planner=debug": that of all topics, then those of single ones. Returns
 * NULL, or what is wrong; then nothing has changed. */
const char *cake_log_levels(const char *text);
/* While this thread is hushed, it logs errors only. Returns the previous state. */
bool cake_log_hush(bool on);
bool cake_log_wants(cake_level level, const char *topic); /* whether this rank would log such a message */
/* Messages quote foreign bytes: shows control characters as numbers (\x0a), so that they do not command the
 * terminal. */
void cake_log_escape(cake_buf *text);
void cake_log_rank(int rank, const char *host); /* default rank 0 */
/* Collects this thread's messages in `into`; NULL: back to standard error. Returns the previous target. */
cake_buf *cake_log_capture(cake_buf *into);
/* Logs lines that were captured, perhaps by another thread. */
void cake_log_captured(const cake_buf *lines);

#endif
