/* SPDX-License-Identifier: Apache-2.0
 *
 * One request on its way from prompt to answer: what crosses the cut between the conductor, which reads and
 * writes files, and the root of a replica, which samples.
 */
#ifndef CAKE_RUN_SEQUENCE_H
#define CAKE_RUN_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "prompt/prompt.h"
#include "record/record.h"
#include "sample/sample.h"
#include "token/token.h"

typedef struct cake_sequence {
    cake_request request;  /* params complete; request.err tells whether it failed */
    bool chat;             /* it came as messages */
    cake_ids ids;          /* prompt and what was generated */
    int n_prompt, max_len; /* ids.len never exceeds max_len */
    cake_key key;
    cake_decoder *decoder;
    cake_buf text; /* of what was generated; cut before a stop string */
    cake_finish finish;
    int n_top;           /* alternatives of each token; -1: no logprobs wanted */
    cake_scored *scored; /* [generated, 1 + n_top] */
    size_t n_scored, cap_scored;
    double admitted, first, latest; /* seconds; of admission and of its first and latest token */
} cake_sequence;

/* Owned; takes *request over. Its prompt is in ids already; token outlives it. */
cake_sequence *cake_sequence_open(cake_request *request, cake_ids *ids, int context, uint64_t job_seed,
                                  const cake_token *token);
void cake_sequence_close(cake_sequence *sequence);

/* Adds a generated token; true if the answer is finished. scored: [1 + n_top], read if n_top >= 0. */
bool cake_sequence_push(cake_sequence *sequence, int32_t id, const cake_scored *scored, const int32_t *eos,
                        int n_eos);
int cake_sequence_generated(const cake_sequence *sequence);
/* How much of the text can no longer be cut off by a stop string that is half there. */
size_t cake_sequence_settled(const cake_sequence *sequence);

#endif
