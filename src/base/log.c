/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static const char *const level_name[] = {"error: ", "warning: ", "", "debug: "};

static const char wipe[] = "\r\033[K";

static struct {
    _Atomic cake_level level;
    atomic_bool bar; /* one stands on the terminal's line */
    int rank;
    char host[64];
    cake_buf *capture;
} state = {.level = CAKE_INFO};

static bool is_wanted(cake_level level)
{
    cake_level most = state.level;
    return level <= most && (state.rank == 0 || level <= CAKE_WARN || most >= CAKE_DEBUG);
}

static bool is_control(unsigned char c)
{
    return c < 0x20 || c == 0x7F;
}

/* Messages quote foreign bytes: what could command a terminal is shown as its number. */
static void escape_controls(cake_buf *line)
{
    cake_buf safe = {0};
    for (size_t i = 0; i < line->len; i++) {
        unsigned char c = (unsigned char)line->data[i];
        if (is_control(c))
            cake_buf_addf(&safe, "\\x%02x", c);
        else
            cake_buf_addc(&safe, (char)c);
    }
    cake_buf_cut(line, 0);
    if (safe.len)
        cake_buf_add(line, safe.data, safe.len);
    cake_buf_free(&safe);
}

/* One write a message, so that lines of several ranks do not mix; a closed stderr changes nothing. */
static void put(const char *line, size_t len)
{
    if (cake_log_bar(false) && write(STDERR_FILENO, wipe, sizeof wipe - 1) < 0)
        state.level = CAKE_ERROR;
    if (write(STDERR_FILENO, line, len) < 0)
        state.level = CAKE_ERROR;
}

void cake_log(cake_level level, const char *topic, const char *fmt, ...)
{
    if (!is_wanted(level))
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
        put(line.data, line.len);
    }
    cake_buf_free(&line);
}

void cake_log_now(cake_level level, const char *topic, const char *text)
{
    char line[1024], from[96] = "";
    if (!is_wanted(level))
        return;
    if (state.rank > 0)
        snprintf(from, sizeof from, "rank %d on %s: ", state.rank, state.host);
    int n = snprintf(line, sizeof line, "cake-mpi: %s%s%s%s%s", from, level_name[level], topic ? topic : "",
                     topic ? ": " : "", text);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
    for (size_t i = 0; i < len; i++)
        line[i] = is_control((unsigned char)line[i]) ? '?' : line[i];
    line[len] = '\n';
    put(line, len + 1);
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

bool cake_log_bar(bool stands)
{
    return atomic_exchange(&state.bar, stands);
}

cake_buf *cake_log_capture(cake_buf *into)
{
    cake_buf *before = state.capture;
    state.capture = into;
    return before;
}
