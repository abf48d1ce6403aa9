/* SPDX-License-Identifier: Apache-2.0
 *
 * How a model reads and writes text: its tokenizer, its chat template and the form of its answers. A large
 * tokenizer takes a tenth of a second, so a thread opens them while the caller plans and loads weights.
 */
#ifndef CAKE_REQUEST_LANGUAGE_H
#define CAKE_REQUEST_LANGUAGE_H

#include "answer/answer.h"
#include "base/thread.h"
#include "chat/chat.h"
#include "tokenizer/tokenizer.h"

typedef struct cake_language_options {
    const char *model;                          /* its directory */
    const char *tool_parser, *reasoning_parser; /* names, "auto" or "none" */
    bool tokenizer_only;                        /* without template and form, and without warnings */
} cake_language_options;

typedef struct cake_language {
    cake_language_options options; /* strings borrowed */
    bool threaded;                 /* the thread works on all that follows */
    pthread_t thread;
    cake_tokenizer *tokenizer;
    cake_chat *chat;
    cake_answer_form form;
    cake_buf said; /* messages of the thread */
    cake_err err;
} cake_language;

/* Begins to open; the thread logs nothing, so whoever fails first speaks alone. Never NULL. */
cake_language *cake_language_open(const cake_language_options *options);
/* Waits until the thread has ended: nothing else of this process computes then. */
void cake_language_settle(cake_language *language);
/* Waits until all is open and logs what there is to say. Further calls return the same. */
cake_err cake_language_wait(cake_language *language);
void cake_language_close(cake_language *language); /* NULL is fine */

#endif
