/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers that were begun: their tokens so far, which a later run goes on from. Tokens are added in parts,
 * each where the one before ended, so that a long answer is written once.
 */
#ifndef CAKE_RECORD_INFLIGHT_H
#define CAKE_RECORD_INFLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

typedef struct cake_scored {
    int32_t id;
    float logprob; /* natural logarithm */
} cake_scored;

typedef struct cake_inflight {
    int64_t order;       /* among the requests of the input */
    int choice;          /* among the request's answers */
    int64_t at;          /* of a part: tokens before it */
    cake_ids ids;        /* generated */
    int width;           /* scores of each token, 0: none */
    cake_scored *scored; /* [ids.len, width] */
} cake_inflight;

/* All of them, by order and choice. */
typedef struct cake_inflights {
    cake_inflight *entry; /* [n] owned, ascending */
    size_t n, cap;
} cake_inflights;

void cake_inflight_free(cake_inflight *inflight); /* zeros are fine */
/* The part as a JSON object, appended. */
void cake_inflight_add(const cake_inflight *part, cake_buf *out);
struct cake_json;
/* Owned; false: it is none. */
bool cake_inflight_parse(const struct cake_json *object, cake_inflight *part);

/* Takes the part over: it begins an answer, or goes on where the one that is known ends; else it is
 * dropped. */
void cake_inflights_put(cake_inflights *all, cake_inflight *part);
/* [n] of a request, those of its choices that were begun; NULL: there is none. */
const cake_inflight *cake_inflights_get(const cake_inflights *all, int64_t order, int *n);
size_t cake_inflights_requests(const cake_inflights *all); /* of which there is any */
void cake_inflights_drop(cake_inflights *all, int64_t order);
void cake_inflights_free(cake_inflights *all); /* zeros are fine */

#endif
