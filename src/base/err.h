/* SPDX-License-Identifier: Apache-2.0
 *
 * Three kinds of trouble, three answers.
 *
 *   the request is bad CAKE_ERR_REQUEST: described in a cake_fault, becomes an error record, nothing is said
 *   the world is bad     CAKE_ERR_FATAL, CAKE_ERR_USAGE: whoever detects it says it once, callers pass it up
 *   we are wrong         CAKE_ASSERT
 *
 * The values are the process's exit codes, so that no table maps one to the other.
 */
#ifndef CAKE_BASE_ERR_H
#define CAKE_BASE_ERR_H

typedef enum cake_err {
    CAKE_OK = 0,
    CAKE_ERR_FATAL = 1,   /* a file, memory, MPI or device failed; already said */
    CAKE_ERR_USAGE = 2,   /* the command line is wrong; already said */
    CAKE_ERR_REQUEST = 3, /* one request is bad; the cake_fault tells, nobody has said it yet */
    CAKE_END = 4,         /* not trouble: an iterator has no more */
    CAKE_STOPPED = 75     /* stopped before its end, and can be gone on from (EX_TEMPFAIL) */
} cake_err;

/* What was wrong with one request, in the terms of the OpenAI API's error object. */
typedef struct cake_fault {
    int status;        /* 400: the request; 500: this machine could not do it, another try may work */
    char param[64];    /* the field, or "" */
    char message[448]; /* one sentence: what was found, what is expected */
} cake_fault;

/* Fills *fault (status 400) and returns CAKE_ERR_REQUEST. param may be NULL. Over-long text is cut at a whole
 * UTF-8 character. */
cake_err cake_fault_set(cake_fault *fault, const char *param, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Says what, where and what to do (log level error, topic) and returns the code. */
cake_err cake_fail(const char *topic, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
cake_err cake_fail_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Ends all ranks with a message and status 1: small memory ran out. */
void cake_die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* The same where the program is wrong, with SIGABRT, so that a debugger or a core shows where. */
void cake_die_broken(const char *file, int line, const char *condition) __attribute__((noreturn));
void cake_die_with(void (*last_words)(void)); /* comm.c registers what ends the other ranks */

#define CAKE_ASSERT(condition) ((condition) ? (void)0 : cake_die_broken(__FILE__, __LINE__, #condition))

#endif
