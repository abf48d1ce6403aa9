/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests become sequences: template, tokens, defaults, and the check that they fit. Whatever is wrong with
 * a request stays with it: the sequence comes out with request.err set.
 */
#ifndef CAKE_REQUEST_PREPARE_H
#define CAKE_REQUEST_PREPARE_H

#include "chat/chat.h"
#include "prompt/prompt.h"
#include "record/record.h"
#include "request/sequence.h"
#include "tokenizer/tokenizer.h"
#include "types/params.h"
#include "types/shard.h"

/* Where requests come from, and what holds for all of them. */
typedef struct cake_prepare_options {
    const char *model;        /* its directory */
    const char *input;        /* NULL: the texts */
    const char *input_format; /* "txt", "jsonl", "h5"; NULL: by the name and the first bytes */
    char **text;              /* [n_text] */
    int n_text;
    cake_names names;      /* of fields in simple JSONL lines */
    const char *system;    /* a system message for texts; NULL: none */
    bool raw;              /* texts go in without a chat template */
    cake_params params;    /* defaults that the user gave */
    int64_t context, seed; /* --context, 0: not given; --seed */
    cake_shard shard;
} cake_prepare_options;

typedef struct cake_preparation {
    cake_prompt *prompt;
    cake_tokenizer *token;
    cake_chat *chat;
    cake_prepare_options options;  /* strings borrowed */
    cake_params defaults;          /* command line, then generation_config.json, then the interface's */
    const cake_recorder *recorder; /* requests whose results it has are passed by; NULL: none */
    int64_t order, passed;         /* requests of this shard so far; those of them that were passed by */
    int context, n_vocab;          /* of the model; 0: unknown (tokenize) */
    cake_buf text;                 /* of the latest prompt */
    bool warned;                   /* of cake_prepare_warn */
} cake_preparation;

/* Opens tokenizer, template and input, says what is wrong. from_model: generation_config.json's defaults or
 * NULL. */
cake_err cake_prepare_open(const cake_prepare_options *options, const cake_params *from_model, int context,
                           int n_vocab, cake_preparation *preparation);
/* Tries whether the input can be opened, before anything long begins. A pipe is not tried, since opening it
 * could not be undone. */
cake_err cake_prepare_check(const cake_prepare_options *options);
/* Opens the same input again, from its beginning. CAKE_END: it can be read only once. */
cake_err cake_prepare_reopen(const cake_preparation *preparation, cake_prompt **out);
/* Warns if the tokenizer has ids beyond the n_vocab rows of the model's embedding. what: says what happens to
 * them. */
void cake_prepare_check_vocab(const cake_preparation *preparation, int64_t n_vocab, const char *what);
/* Warns if the tokenizer's eos_token is none of the model's end tokens eos [n_eos]: other programs end
 * there. */
void cake_prepare_check_eos(const cake_preparation *preparation, const int32_t *eos, int n_eos);
void cake_prepare_close(cake_preparation *preparation); /* zeros are fine */
/* Completes the parameters of a request and makes ids [owned by the caller] of its prompt, and text the
 * rendered prompt (empty if it came as ids). Whatever is wrong is the request's fault. Called from any
 * thread. */
void cake_prepare_request(const cake_preparation *preparation, cake_request *request, cake_buf *text,
                          cake_ids *ids);
/* Says once of a prepared request that it comes from /v1/completions and has no max_tokens: the API ends it
 * after 16, here the context does. */
void cake_prepare_warn(bool *warned, const cake_request *request);
/* CAKE_OK and an owned sequence, or CAKE_OK and NULL: a pipe has none now. CAKE_END: there are no more.
 * CAKE_ERR_FATAL. */
cake_err cake_prepare_next(cake_preparation *preparation, cake_sequence **out);

#endif
