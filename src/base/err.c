/* SPDX-License-Identifier: Apache-2.0
 *
 * In: an error. Out: a code after its message was logged, a filled cake_fault, or the end of all ranks.
 * Invariant: dying allocates nothing, and only the first thread that dies logs.
 */
#include "base/err.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/utf8.h"

static void (*last_words)(void);

cake_err cake_fault_set(cake_fault *fault, const char *param, const char *fmt, ...)
{
    fault->status = 400;
    snprintf(fault->param, sizeof fault->param, "%s", param ? param : "");
    va_list args;
    va_start(args, fmt);
    vsnprintf(fault->message, sizeof fault->message, fmt, args);
    va_end(args);
    fault->message[cake_utf8_check(fault->message, strlen(fault->message))] = 0;
    fault->param[cake_utf8_check(fault->param, strlen(fault->param))] = 0;
    return CAKE_ERR_REQUEST;
}

static __attribute__((format(printf, 2, 0))) void say(const char *topic, const char *fmt, va_list args)
{
    cake_buf text = {0};
    cake_buf_addv(&text, fmt, args);
    cake_log(CAKE_ERROR, topic, "%s", text.data);
    cake_buf_free(&text);
}

cake_err cake_fail(const char *topic, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(topic, fmt, args);
    va_end(args);
    return CAKE_ERR_FATAL;
}

cake_err cake_fail_usage(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say("usage", fmt, args);
    va_end(args);
    return CAKE_ERR_USAGE;
}

/* Logs without allocating, since memory may be what ran out, and ends the other ranks. */
static void end_all(const char *text)
{
    static atomic_flag ending = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set(&ending)) /* another thread is dying */
        pause();
    cake_log_now(CAKE_ERROR, NULL, text);
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
    _exit(CAKE_ERR_FATAL);
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
