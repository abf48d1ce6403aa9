/* SPDX-License-Identifier: Apache-2.0
 *
 * What a request asks for. A task is a row here: what the engine computes for it; a row of request/encode.c:
 * which tokens; and rows of the record formats: how its result looks.
 */
#ifndef CAKE_TYPES_TASK_H
#define CAKE_TYPES_TASK_H

#include <stdbool.h>

typedef enum cake_task {
    CAKE_TASK_GENERATE, /* answers to a prompt */
    CAKE_TASK_SCORE,    /* the probability of a given text, or continuation of a context */
    CAKE_TASK_EMBED,    /* the embedding of each input */
    CAKE_TASK_RERANK,   /* how well texts go together: a score for each pair */
    CAKE_N_TASK
} cake_task;

typedef struct cake_task_row {
    const char *name; /* of --task */
    bool generates;   /* tokens are drawn */
    bool pools;       /* of rows the hidden states are wanted, and pooled; otherwise scores of tokens */
    bool targets;     /* the tokens of a text are scored; the last one is no row */
    bool pairs;       /* inputs are pairs, and each gets one score */
} cake_task_row;

extern const cake_task_row cake_tasks[CAKE_N_TASK];

#endif
