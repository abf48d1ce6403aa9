/* SPDX-License-Identifier: Apache-2.0
 *
 * The inputs of a request whose embeddings are wanted become parts of its prompt.
 */
#ifndef CAKE_REQUEST_INPUTS_H
#define CAKE_REQUEST_INPUTS_H

#include "prompt/prompt.h"
#include "request/prompt_names.h"
#include "tokenizer/tokenizer.h"

typedef struct cake_inputs_limits {
    int context; /* tokens of an input; 0: unknown */
    int n_embed; /* elements of an embedding; 0: unknown */
} cake_inputs_limits;

/* Sets the request's parts, ids [owned by the caller] to the tokens of all, and text to the inputs that are
 * texts, each after its prompt, a line each. truncate_prompt_tokens keeps the first tokens of an input, and
 * those that the tokenizer adds, as sentence-transformers does. */
cake_err cake_inputs_encode(const cake_tokenizer *tokenizer, const cake_prompt_names *prompts,
                            const cake_inputs_limits *limits, cake_request *request, cake_buf *text,
                            cake_ids *ids);

#endif
