/* SPDX-License-Identifier: Apache-2.0
 *
 * The inputs of a request whose embeddings are wanted, or scores of pairs, become parts of its prompt. A
 * classifier computes a pair as one part; of a model that embeds each text is one, and a pair's score is the
 * cosine of both.
 */
#ifndef CAKE_REQUEST_INPUTS_H
#define CAKE_REQUEST_INPUTS_H

#include "prompt/prompt.h"
#include "request/prompt_names.h"
#include "tokenizer/tokenizer.h"

/* Two texts, and what stands before them, as far as the template has a place for it. */
typedef struct cake_pair_texts {
    const char *before, *query, *document; /* document [document_len] */
    size_t query_len, document_len;
} cake_pair_texts;

typedef struct cake_inputs_limits {
    int context; /* tokens of an input; 0: unknown */
    int n_embed; /* elements of an embedding; 0: unknown */
    bool pairs;  /* the model is a classifier: a part is a pair */
    bool apart;  /* tokens of the prompt before an input are not pooled */
    /* Appends a query and a document as the model's template has them; NULL: a pair is the tokenizer's. */
    cake_err (*render)(const void *self, cake_request *request, const cake_pair_texts *pair, cake_buf *text);
    const void *self;
} cake_inputs_limits;

/* Sets the request's parts, ids [owned by the caller] to the tokens of all, and text to the inputs that are
 * texts, each after its prompt, a line each. truncate_prompt_tokens keeps the first tokens of an input, and
 * those that the tokenizer adds, as sentence-transformers does. */
cake_err cake_inputs_encode(const cake_tokenizer *tokenizer, const cake_prompt_names *prompts,
                            const cake_inputs_limits *limits, cake_request *request, cake_buf *text,
                            cake_ids *ids);
/* The scores of a request's pairs [n_input], from what the model gave for its parts [n_part]: x [n] each.
 * sigmoid: of a classifier's output. */
typedef struct cake_pooled_part {
    const float *x; /* [n] */
    int n;
} cake_pooled_part;
void cake_inputs_scores(const cake_request *request, const cake_pooled_part *part, bool sigmoid,
                        float *score);

#endif
