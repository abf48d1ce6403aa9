/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of one request. Four sources fill them, earlier ones first: the request, the command line,
 * generation_config.json, the defaults of the interface. A field that no source has set is "unset" (NaN for
 * reals, CAKE_UNSET for integers), so that merging is one loop over cake_params_fields.
 */
#ifndef CAKE_TYPES_PARAMS_H
#define CAKE_TYPES_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* The form of a request's line, and so of its answer. */
typedef enum cake_form {
    CAKE_FORM_SIMPLE,           /* an object with prompt or messages; also lines of .txt files and -p */
    CAKE_FORM_BATCH_CHAT,       /* OpenAI batch, /v1/chat/completions */
    CAKE_FORM_BATCH_COMPLETION, /* OpenAI batch, /v1/completions */
    CAKE_FORM_BATCH_EMBEDDING,  /* OpenAI batch, /v1/embeddings */
    CAKE_FORM_BATCH_RERANK,     /* /v1/rerank */
    CAKE_FORM_BATCH_SCORE,      /* /v1/score */
    CAKE_FORM_BATCH_RESPONSE    /* OpenAI batch, /v1/responses */
} cake_form;

/* Buffer size for a request's name in messages: its line, counted from 1, and its id, a JSON text or NULL:
 * line 44 (custom_id "a"). index counts from 0. */
enum { CAKE_REQUEST_NAME = 128 };
const char *cake_request_name(cake_form form, int64_t index, const char *id, char out[CAKE_REQUEST_NAME]);

#define CAKE_UNSET      INT64_MIN
#define CAKE_MAX_STOP   16
#define CAKE_MAX_CHOICE 128
#define CAKE_MAX_TOP    20 /* maximum of logprobs */

/* An addition to one token's score. */
typedef struct cake_logit_bias {
    int32_t id;
    float bias;    /* -100 to 100, or -infinity: the token is never drawn */
    int32_t first; /* 1: the token may not come first in an answer, whatever bias is */
} cake_logit_bias;

typedef struct cake_params {
    int64_t max_tokens;             /* >= 1, with echo >= 0; unset: up to the context's length */
    int64_t min_tokens;             /* 0: off */
    int64_t n;                      /* choices, 1 to CAKE_MAX_CHOICE */
    int64_t top_k;                  /* 0 and -1: off */
    int64_t seed;                   /* unset: derived from the job's seed and the request */
    int64_t ignore_eos;             /* 0 or 1 */
    int64_t echo;                   /* 0 or 1: the prompt is part of the text */
    int64_t logprobs;               /* number of alternatives, 0 to 20; unset: no logprobs at all */
    int64_t prompt_logprobs;        /* the same of the prompt's tokens */
    int64_t return_token_ids;       /* 0 or 1 */
    int64_t dimensions;             /* of an embedding, the first of all that the model gives; unset: all */
    int64_t top_n;                  /* of documents, the best are given; unset: all */
    int64_t return_documents;       /* 0 or 1: with their texts */
    int64_t base64;                 /* 0 or 1: embeddings are written so (encoding_format) */
    int64_t truncate_prompt_tokens; /* how many last ones are kept; -1: those that fit; unset: all */
    double temperature;             /* 0 to 2; 0: greedy */
    double top_p;                   /* in (0, 1] */
    double min_p;                   /* 0 to 1; 0: off */
    double repetition_penalty;      /* above 0; 1: off */
    double presence_penalty;        /* -2 to 2; 0: off */
    double frequency_penalty;       /* -2 to 2; 0: off */
    int n_stop;                     /* -1: unset */
    char *stop[CAKE_MAX_STOP];      /* owned, NUL-terminated, not empty */
    cake_ids stop_ids;              /* owned; only a request has them, there is no default */
    cake_logit_bias *bias;          /* [n_bias] owned; the request's, then the model's, which win */
    size_t n_bias;
    /* The first token of the prompt whose probability is wanted, >= 1; 0: none, or with echo and logprobs
     * all. Preparation sets it. */
    int64_t score_from;
} cake_params;

typedef struct cake_params_field {
    const char *name; /* as a request has it */
    size_t offset;    /* offset of the int64_t or double */
    bool real;
    double min, max; /* inclusive; the bound of a real may be infinite */
    bool above_min;  /* min itself is excluded */
    double base;     /* the default; NaN: stays unset */
} cake_params_field;

extern const cake_params_field cake_params_fields[]; /* ends with a NULL name; lists are not among them */

/* Whether a field of reals may have the value. */
bool cake_params_has(const cake_params_field *field, double value);
/* The field's range for messages: "a number above 0 and at most 1". */
enum { CAKE_PARAMS_RANGE = 96 };
const char *cake_params_range(const cake_params_field *field, char out[CAKE_PARAMS_RANGE]);

cake_params cake_params_unset(void);
/* The defaults of the interface: max_tokens, seed and logprobs are unset, all else is set. */
cake_params cake_params_base(void);
/* Every unset field of *params takes over's value; stop strings are copied, biases appended. */
void cake_params_merge(cake_params *params, const cake_params *over);
void cake_params_free(cake_params *params); /* frees the lists and unsets them */

#endif
