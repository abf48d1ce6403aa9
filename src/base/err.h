/* SPDX-License-Identifier: Apache-2.0
 *
 * Three kinds of error, three answers.
 *
 *   a bad request   CAKE_ERR_REQUEST: described in a cake_fault, becomes an error record, nothing is logged
 *   a bad world     CAKE_ERR_FATAL, CAKE_ERR_USAGE: the first to detect it logs it once, callers pass it up
 *   a bug           CAKE_ASSERT
 *
 * The values are the process's exit codes, so that no table maps one to the other.
 */
#ifndef CAKE_BASE_ERR_H
#define CAKE_BASE_ERR_H

#include "base/die.h"

typedef enum cake_err {
    CAKE_OK = 0,
    CAKE_ERR_FATAL = 1,   /* a file, memory, MPI or device failed; already logged */
    CAKE_ERR_USAGE = 2,   /* the command line is wrong; already logged */
    CAKE_ERR_REQUEST = 3, /* one request is bad: see the cake_fault; not logged yet */
    CAKE_END = 4,         /* not an error: an iterator has no more */
    CAKE_STOPPED = 75     /* stopped before the end; the same command line resumes (EX_TEMPFAIL) */
} cake_err;

/* The error of one request, in the terms of the OpenAI API's error object. */
typedef struct cake_fault {
    int status;        /* 400: the request is bad; 500: this machine failed, another try may work */
    char param[64];    /* the field, or "" */
    char message[448]; /* one sentence: what was found, what is expected */
} cake_fault;

/* Fills *fault (status 400) and returns CAKE_ERR_REQUEST. param may be NULL. Over-long text is cut at a whole
 * UTF-8 character. */
cake_err cake_fault_set(cake_fault *fault, const char *param, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Logs what, where and what to do (level error, topic) and returns the code. */
cake_err cake_fail(const char *topic, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
cake_err cake_fail_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
