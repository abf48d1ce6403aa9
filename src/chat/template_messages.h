/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes to messages before the template, and to its text before the tokenizer, as transformers'
 * apply_chat_template makes them.
 */
#ifndef CAKE_CHAT_TEMPLATE_MESSAGES_H
#define CAKE_CHAT_TEMPLATE_MESSAGES_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "formats/json.h"

struct cake_render;
struct cake_value;

typedef struct cake_messages {
    const cake_json *list; /* borrowed */
    bool parts;            /* the template handles contents that are lists of parts */
    bool mark;             /* the last message is to be continued */
    cake_json **parsed;    /* [n_parsed] arguments of tool calls, owned; values refer to them */
    size_t n_parsed;
} cake_messages;

/* Fails unless the messages can be given to a template; the fault names the field. */
cake_err cake_messages_usable(const cake_messages *messages, cake_fault *fault);
/* The value of `messages` in the template (from: a cake_messages): a tool call's arguments that are the text
 * of a JSON object become that object; null members are absent; reasoning has all its names; lists of text
 * parts become one text (unless the template handles parts); the last message gets a mark if it is to be
 * continued. */
struct cake_value cake_messages_make(struct cake_render *run, const void *messages);
/* Cuts the text rendered from byte `from` on at the mark, so that the model continues there. */
cake_err cake_messages_cut(const cake_messages *messages, cake_buf *text, size_t from, cake_fault *fault);
void cake_messages_close(cake_messages *messages);

#endif
