/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a failed allocation or a bug. Out: a message and the end of all ranks.
 * Invariant: dying allocates nothing, and only the first thread that dies reports it.
 */
#include "base/die.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/stderr.h"

enum { STATUS = 1 }; /* CAKE_ERR_FATAL */

static void (*last_words)(void);

/* Reports the text and ends the other ranks. */
static void end_all(const char *text)
{
    static atomic_flag ending = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set(&ending)) /* another thread is dying */
        pause();
    cake_stderr_message("error: ", NULL, text);
    if (last_words)
        last_words();
}

void cake_die(const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    end_all(text);
    _exit(STATUS);
}

void cake_die_broken(const char *file, int line, const char *condition)
{
    char text[512];
    snprintf(text, sizeof text, "%s:%d: broken invariant: %s", file, line, condition);
    end_all(text);
    abort();
}

void cake_die_with(void (*words)(void))
{
    last_words = words;
}
