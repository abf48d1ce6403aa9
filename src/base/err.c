/* SPDX-License-Identifier: Apache-2.0
 *
 * In: an error. Out: a code after its message was logged, or a filled cake_fault.
 */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/utf8.h"

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
