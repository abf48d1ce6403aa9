/* SPDX-License-Identifier: Apache-2.0
 *
 * The named prompts of a model that embeds: texts that stand before an input
 * (config_sentence_transformers.json of sentence-transformers).
 */
#ifndef CAKE_REQUEST_PROMPT_NAMES_H
#define CAKE_REQUEST_PROMPT_NAMES_H

#include "base/buf.h"
#include "base/err.h"

typedef struct cake_named_prompt {
    char *name, *text; /* owned */
} cake_named_prompt;

typedef struct cake_prompt_names {
    cake_named_prompt *prompt; /* [n] owned */
    int n, otherwise;          /* otherwise: of an input that names none; -1: nothing stands before it */
} cake_prompt_names;

/* Reads the file in the model's directory; without one there are no prompts. Errors are logged. */
cake_err cake_prompt_names_read(const char *model, cake_prompt_names *out);
void cake_prompt_names_free(cake_prompt_names *names);
/* The text that stands before an input: "" for none. name NULL: the default. NULL: there is no such name, and
 * known gets a list of those that there are. */
const char *cake_prompt_names_text(const cake_prompt_names *names, const char *name, cake_buf *known);

#endif
