/* SPDX-License-Identifier: Apache-2.0
 *
 * In: lines of any thread. Out: one write per line to standard error, so that lines of several ranks do not
 * mix.
 * Invariant: nothing is allocated.
 */
#include "base/stderr.h"

#include <stdatomic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char wipe[] = "\r\033[K";

static char origin[96];
static atomic_bool has_bar;

void cake_stderr_rank(int rank, const char *host)
{
    origin[0] = 0;
    if (rank > 0)
        snprintf(origin, sizeof origin, "rank %d on %.63s: ", rank, host);
}

const char *cake_stderr_origin(void)
{
    return origin;
}

static void write_now(const char *text, size_t len)
{
    ssize_t n = write(STDERR_FILENO, text, len);
    (void)n;
}

void cake_stderr_write(const char *line, size_t len)
{
    if (cake_stderr_bar(false))
        write_now(wipe, sizeof wipe - 1);
    write_now(line, len);
}

void cake_stderr_message(const char *level, const char *topic, const char *text)
{
    char line[1024];
    int n = snprintf(line, sizeof line, "cake-mpi: %s%s%s%s%s", origin, level, topic ? topic : "",
                     topic ? ": " : "", text);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
    for (size_t i = 0; i < len; i++)
        line[i] = (unsigned char)line[i] < 0x20 || line[i] == 0x7F ? '?' : line[i];
    line[len] = '\n';
    cake_stderr_write(line, len + 1);
}

bool cake_stderr_bar(bool stands)
{
    return atomic_exchange(&has_bar, stands);
}

void cake_stderr_wait_read(void)
{
    enum { PATIENCE = 100 }; /* hundredths of a second */
    struct stat s;
    int unread;
    if (fstat(STDERR_FILENO, &s) || !S_ISFIFO(s.st_mode))
        return;
    for (int i = 0; i < PATIENCE && !ioctl(STDERR_FILENO, FIONREAD, &unread) && unread; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}
