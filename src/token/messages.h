/* SPDX-License-Identifier: Apache-2.0
 *
 * What happens to messages between a request and the template, and to the text between the template and the
 * tokenizer.
 */
#ifndef CAKE_TOKEN_MESSAGES_H
#define CAKE_TOKEN_MESSAGES_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

/* A copy of messages, owned, in which a tool call's arguments that spell a JSON object are that object, reasoning
 * has all its names, contents that are lists of text parts are one text (unless the template knows parts), and
 * the last message carries a mark if it is to be continued. */
cake_err cake_messages_prepare(const cake_json *messages, bool parts, bool mark, cake_json **out,
                               cake_fault *fault);
/* Cuts the text rendered from byte `from` on at the mark, so that the model goes on there. */
cake_err cake_messages_cut(cake_buf *text, size_t from, cake_fault *fault);

#endif
