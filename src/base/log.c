/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static const char *const level_name[] = {"error: ", "warning: ", "", "debug: "};

static struct {
    cake_level level;
    int rank;
    char host[64];
    void (*clear)(void);
    cake_buf *capture;
} state = {.level = CAKE_INFO};

void cake_log(cake_level level, const char *topic, const char *fmt, ...)
{
    if (level > state.level || (state.rank > 0 && level > CAKE_WARN && state.level < CAKE_DEBUG))
        return;
    cake_buf line = {0};
    cake_buf_adds(&line, "cake-mpi: ");
    if (state.rank > 0)
        cake_buf_addf(&line, "rank %d on %s: ", state.rank, state.host);
    cake_buf_adds(&line, level_name[level]);
    if (topic)
        cake_buf_addf(&line, "%s: ", topic);
    va_list args;
    va_start(args, fmt);
    cake_buf_addv(&line, fmt, args);
    va_end(args);
    cake_buf_addc(&line, '\n');
    if (state.capture) {
        cake_buf_add(state.capture, line.data, line.len);
    } else {
        if (state.clear)
            state.clear();
        fflush(stderr);
        /* one write a message, so that lines of several ranks do not mix; a closed stderr changes nothing */
        if (write(STDERR_FILENO, line.data, line.len) < 0)
            state.level = CAKE_ERROR;
    }
    cake_buf_free(&line);
}

void cake_log_level(cake_level level)
{
    state.level = level;
}

void cake_log_rank(int rank, const char *host)
{
    state.rank = rank;
    snprintf(state.host, sizeof state.host, "%s", host);
}

void cake_log_line(void (*clear)(void))
{
    state.clear = clear;
}

void cake_log_capture(cake_buf *into)
{
    state.capture = into;
}
