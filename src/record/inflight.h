/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of unfinished answers: the tokens so far, from which a later run continues. Tokens are stored
 * in parts; each part starts where the previous one ended, so a long answer is written only once.
 */
#ifndef CAKE_RECORD_INFLIGHT_H
#define CAKE_RECORD_INFLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

typedef struct cake_token_logprob {
    int32_t id;
    float logprob; /* natural logarithm */
} cake_token_logprob;

typedef struct cake_inflight {
    int64_t order;                /* index among the requests of the input */
    int choice;                   /* index among the request's answers */
    int64_t at;                   /* tokens before this part */
    cake_ids ids;                 /* generated */
    int width;                    /* scores per token; 0: none */
    cake_token_logprob *logprobs; /* [ids.len, width] */
} cake_inflight;

/* Ordered by (order, choice). */
typedef struct cake_inflights {
    cake_inflight *entry; /* [n] owned, ascending */
    size_t n, cap;
} cake_inflights;

void cake_inflight_free(cake_inflight *inflight); /* zeros are fine */
/* Appends the part as a JSON object. */
void cake_inflight_add(const cake_inflight *part, cake_buf *out);
struct cake_json;
/* *part is owned. False: not a valid part. */
bool cake_inflight_parse(const struct cake_json *object, cake_inflight *part);

/* Takes ownership of the part. It starts an answer or continues a known one; a part that does neither is
 * dropped. */
void cake_inflights_put(cake_inflights *all, cake_inflight *part);
/* The unfinished choices [n] of a request; NULL: none. */
const cake_inflight *cake_inflights_get(const cake_inflights *all, int64_t order, int *n);
size_t cake_inflights_requests(const cake_inflights *all); /* number of requests with an unfinished choice */
void cake_inflights_drop(cake_inflights *all, int64_t order);
void cake_inflights_free(cake_inflights *all); /* zeros are fine */

#endif
