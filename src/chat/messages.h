/* SPDX-License-Identifier: Apache-2.0
 *
 * What happens to messages between a request and the template, and to the text between the template and the
 * tokenizer: as transformers' apply_chat_template does it.
 */
#ifndef CAKE_CHAT_MESSAGES_H
#define CAKE_CHAT_MESSAGES_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "formats/json.h"

struct cake_render;
struct cake_value;

typedef struct cake_messages {
    const cake_json *list; /* borrowed */
    bool parts;            /* the template knows contents that are lists of parts */
    bool mark;             /* the last message is to be continued */
    cake_json **parsed;    /* [n_parsed] arguments of tool calls, owned: values refer to them */
    size_t n_parsed;
} cake_messages;

/* Whether the messages are what a template can be given; the fault names the field otherwise. */
cake_err cake_messages_usable(const cake_messages *messages, cake_fault *fault);
/* The value that the template sees (messages: a cake_messages): a tool call's arguments that spell a JSON
 * object are that object, members that are null are absent, reasoning has all its names, contents that are
 * lists of text parts are one text (unless the template knows parts), and the last message carries a mark if
 * it is to be continued. */
struct cake_value cake_messages_make(struct cake_render *run, const void *messages);
/* Cuts the text rendered from byte `from` on at the mark, so that the model goes on there. */
cake_err cake_messages_cut(const cake_messages *messages, cake_buf *text, size_t from, cake_fault *fault);
void cake_messages_close(cake_messages *messages);

#endif
