/* SPDX-License-Identifier: Apache-2.0 */
#include "run/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

static struct {
    enum { NONE, BAR, LINE } mode;
    double start, next;
    int drawn; /* a bar stands on the terminal's line */
} state;

static void wipe(void)
{
    if (state.drawn)
        fputs("\r\033[K", stderr);
    state.drawn = 0;
}

void cake_progress_open(const char *mode)
{
    state.mode = !strcmp(mode, "none")   ? NONE
                 : !strcmp(mode, "bar")  ? BAR
                 : !strcmp(mode, "line") ? LINE
                 : isatty(STDERR_FILENO) ? BAR
                                         : LINE;
    state.start = cake_clock_now();
    state.next = state.start + (state.mode == BAR ? 0.2 : 60);
    if (state.mode == BAR)
        cake_log_line(wipe);
}

static void draw(const cake_counts *c, double seconds)
{
    char line[32] = "", failed[32] = "";
    if (c->share >= 0) {
        int cells = (int)(c->share * 20);
        snprintf(line, sizeof line, "[%.*s%*s] ", cells, "####################", 20 - cells, "");
    }
    if (c->failed)
        snprintf(failed, sizeof failed, " (%lld failed)", (long long)c->failed);
    fprintf(stderr, "\r%s%lld requests%s, %.0f tokens/s\033[K", line, (long long)c->done, failed,
            (double)c->generated / seconds);
    fflush(stderr);
    state.drawn = 1;
}

void cake_progress_tick(const cake_counts *c)
{
    if (state.mode == NONE)
        return;
    double now = cake_clock_now();
    if (now < state.next)
        return;
    state.next = now + (state.mode == BAR ? 0.2 : 60);
    double seconds = now - state.start;
    if (state.mode == BAR)
        draw(c, seconds);
    else
        cake_log(CAKE_INFO, NULL,
                 "%lld requests done, %lld failed, %lld tokens generated, %.1f tokens/s, %.0f s",
                 (long long)c->done, (long long)c->failed, (long long)c->generated,
                 (double)c->generated / seconds, seconds);
}

void cake_progress_close(void)
{
    wipe();
    cake_log_line(NULL);
    state.mode = NONE;
}
