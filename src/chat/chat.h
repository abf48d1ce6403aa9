/* SPDX-License-Identifier: Apache-2.0
 *
 * The model's own chat template, run as transformers' apply_chat_template does: Jinja with trim_blocks and
 * lstrip_blocks, loop controls, and the globals raise_exception, strftime_now, namespace, range, dict.
 */
#ifndef CAKE_CHAT_CHAT_H
#define CAKE_CHAT_CHAT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "formats/json.h"

typedef struct cake_chat cake_chat;

/* Reads the template from dir's chat_template.jinja (and additional_chat_templates/tool_use.jinja),
 * chat_template.json or tokenizer_config.json, and the special tokens of the files or of the tokenizer's
 * class (specials.h). A model without a template also opens: then cake_chat_has returns false. */
cake_err cake_chat_open(const char *dir, cake_chat **out);
void cake_chat_close(cake_chat *chat);
bool cake_chat_has(const cake_chat *chat);
/* Whether one of its templates has this text. */
bool cake_chat_mentions(const cake_chat *chat, const char *text);

typedef struct cake_chat_input {
    const cake_json *messages;
    const cake_json *tools;       /* NULL: none */
    const cake_json *kwargs;      /* chat_template_kwargs, entries become variables; NULL: none */
    const char *reasoning_effort; /* a variable; NULL: none */
    bool add_generation_prompt;
    bool continue_final_message;
} cake_chat_input;

/* Appends the rendered prompt. Thread-safe. A template that raises, exceeds a limit (steps, depth, bytes) or
 * meets a value it cannot use is a fault of the request, with the template's own message. */
cake_err cake_chat_render(const cake_chat *chat, const cake_chat_input *input, cake_buf *out,
                          cake_fault *fault);

#endif
