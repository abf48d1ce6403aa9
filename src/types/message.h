/* SPDX-License-Identifier: Apache-2.0
 *
 * An answer as a message: what was thought, what is said, which tools are called.
 */
#ifndef CAKE_TYPES_MESSAGE_H
#define CAKE_TYPES_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum cake_tool_choice {
    CAKE_TOOLS_AUTO,
    CAKE_TOOLS_NONE,
    CAKE_TOOLS_REQUIRED, /* one call or more */
    CAKE_TOOLS_NAMED     /* one call of one tool */
} cake_tool_choice;

/* Where in the model's form of answers an answer begins. */
typedef enum cake_answer_begin {
    CAKE_ANSWER_FREE,  /* the model may think first */
    CAKE_ANSWER_OPEN,  /* the prompt ends where reasoning has begun */
    CAKE_ANSWER_CLOSED /* the prompt ends behind reasoning */
} cake_answer_begin;

typedef struct cake_tool_call {
    char *name;
    char *arguments; /* JSON, an object */
    char *id;        /* that the model gave it; NULL: none */
} cake_tool_call;

typedef struct cake_message {
    char *content; /* [n_content] */
    size_t n_content;
    char *reasoning; /* [n_reasoning]; NULL: there is none */
    size_t n_reasoning;
    cake_tool_call *call; /* [n_call] */
    int n_call;
    bool content_last;    /* the content stands behind all calls */
    bool reads_reasoning; /* reasoning would have been found */
    int64_t reasoning_tokens;
    bool short_ids; /* ids of calls have nine characters */
} cake_message;

#endif
