/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests become sequences: template, tokens, defaults, and the check that they fit. An error in a request
 * stays with it: the sequence has request.err set.
 */
#ifndef CAKE_REQUEST_PREPARE_H
#define CAKE_REQUEST_PREPARE_H

#include "config/config.h"
#include "prompt/prompt.h"
#include "record/record.h"
#include "request/language.h"
#include "request/prompt_names.h"
#include "request/sequence.h"
#include "types/params.h"
#include "types/shard.h"

/* The source of requests, and what holds for all of them. */
typedef struct cake_prepare_options {
    const char *model;        /* its directory */
    const char *input;        /* NULL: text */
    const char *input_format; /* "txt", "jsonl", "h5"; NULL: by the name and the first bytes */
    char **text;              /* [n_text] */
    int n_text;
    cake_names names;                           /* of fields in simple JSONL lines */
    cake_task task;                             /* of texts and simple lines with a prompt */
    const char *system;                         /* a system message for texts; NULL: none */
    bool raw;                                   /* texts get no chat template */
    const char *tool_parser, *reasoning_parser; /* names, "auto" or "none" */
    cake_params params;                         /* defaults from the command line */
    int64_t context, seed;                      /* --context, 0: not given; --seed */
    cake_shard shard;
} cake_prepare_options;

enum { CAKE_PREPARE_AHEAD = 64 };

typedef struct cake_preparation {
    cake_prompt *prompt;
    cake_language *language;   /* owned */
    cake_tokenizer *tokenizer; /* the language's, as chat and form; NULL: not waited for yet */
    cake_chat *chat;
    cake_prepare_options options; /* strings borrowed */
    cake_params defaults;         /* from the command line, else generation_config.json, else the interface */
    const cake_recorder *recorder; /* requests with results in it are skipped; NULL: none */
    int64_t order, passed;         /* requests of this shard so far; skipped ones among them */
    int context, n_vocab; /* the model's; 0: unknown (tokenize), or prompts beyond it are no errors */
    const cake_config
        *config; /* borrowed, set by the caller: whether the model embeds or ranks; NULL: unknown */
    cake_prompt_names prompt_names;
    cake_grammar_cache *grammars;
    cake_answer_form form; /* in which the model writes answers */
    int window;            /* the context to which prompts are cut, if they ask for it; 0: unknown */
    cake_buf text;         /* the latest prompt, rendered */
    bool warned;           /* cake_prepare_warn has logged */
    cake_sequence *ahead[CAKE_PREPARE_AHEAD]; /* ring, n_ahead from `first`: their constraints are compiled */
    int first, n_ahead;
    cake_err end; /* of reading */
} cake_preparation;

/* Begins to open tokenizer and template. */
cake_language *cake_prepare_language(const cake_prepare_options *options);
/* Opens the input; logs errors. Takes language over. from_model: defaults of generation_config.json, or
 * NULL. */
cake_err cake_prepare_begin(const cake_prepare_options *options, const cake_params *from_model, int context,
                            int n_vocab, cake_language *language, cake_preparation *preparation);
/* Waits for tokenizer and template, which all that follows needs; logs what is wrong with them. Further calls
 * return the same. */
cake_err cake_prepare_wait(cake_preparation *preparation);
/* All of it at once. */
cake_err cake_prepare_open(const cake_prepare_options *options, const cake_params *from_model, int context,
                           int n_vocab, cake_preparation *preparation);
/* Whether a run could use the model's tokenizer and chat template; logs what is wrong. form: that of answers,
 * without the tokenizer; NULL is fine. */
cake_err cake_prepare_check_model(const char *model, cake_answer_form *form);
/* Checks early that the input can be opened. Pipes are not checked, since opening one cannot be undone. */
cake_err cake_prepare_check(const cake_prepare_options *options);
/* Opens the input again from its beginning. CAKE_END: it can be read only once. */
cake_err cake_prepare_reopen(const cake_preparation *preparation, cake_prompt **out);
/* Warns if the tokenizer has ids beyond the n_vocab rows of the model's embedding. what: what happens to
 * prompts with them. */
void cake_prepare_check_vocab(const cake_preparation *preparation, int64_t n_vocab, const char *what);
/* Warns if the tokenizer's eos_token is none of the model's end tokens eos [n_eos]: other programs stop at
 * it. */
void cake_prepare_check_eos(const cake_preparation *preparation, const int32_t *eos, int n_eos);
void cake_prepare_close(cake_preparation *preparation); /* zeros are fine */
/* Completes the parameters of a request, tokenizes its prompt into ids [owned by the caller], and sets text
 * to the rendered prompt (empty if it came as ids). Errors go into the request. Thread-safe. */
void cake_prepare_request(const cake_preparation *preparation, cake_request *request, cake_buf *text,
                          cake_ids *ids);
/* The most tokens that a prompt may have: one is left for an answer, unless none is requested; the last one
 * of a text that is scored is no row. */
size_t cake_prepare_max_prompt(int context, const cake_request *request);
/* Warns once about a request of /v1/completions without max_tokens: the API ends its answer after 16 tokens,
 * this program at the end of the context. */
void cake_prepare_warn(bool *warned, const cake_request *request);
/* CAKE_OK and an owned sequence, or NULL if there is none now, because a pipe has none or because the
 * constraint of the next one is being compiled; CAKE_END: no more requests; CAKE_ERR_FATAL. */
cake_err cake_prepare_next(cake_preparation *preparation, cake_sequence **out);

#endif
