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

/* Messages quote foreign bytes: what could command a terminal is shown as its number. */
static void escape_controls(cake_buf *line)
{
    cake_buf safe = {0};
    for (size_t i = 0; i < line->len; i++) {
        unsigned char c = (unsigned char)line->data[i];
        if (c < 0x20 || c == 0x7F)
            cake_buf_addf(&safe, "\\x%02x", c);
        else
            cake_buf_addc(&safe, (char)c);
    }
    cake_buf_cut(line, 0);
    if (safe.len)
        cake_buf_add(line, safe.data, safe.len);
    cake_buf_free(&safe);
}

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
    escape_controls(&line);
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

void cake_log_last(const char *text)
{
    char line[768], from[128] = "";
    if (state.rank > 0)
        snprintf(from, sizeof from, "rank %d on %s: ", state.rank, state.host);
    int n = snprintf(line, sizeof line, "cake-mpi: %serror: %s\n", from, text);
    if (state.clear)
        state.clear();
    fflush(stderr);
    if (write(STDERR_FILENO, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1) < 0)
        state.level = CAKE_ERROR;
}

cake_level cake_log_level(cake_level level)
{
    cake_level before = state.level;
    state.level = level;
    return before;
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

cake_buf *cake_log_capture(cake_buf *into)
{
    cake_buf *before = state.capture;
    state.capture = into;
    return before;
}
