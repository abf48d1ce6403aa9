/* SPDX-License-Identifier: Apache-2.0
 *
 * Batched sampler: turns the scores of a wave's rows into tokens and log probabilities, rows in parallel.
 */
#ifndef CAKE_ENGINE_SAMPLER_H
#define CAKE_ENGINE_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "request/sequence.h"
#include "types/topk.h"

/* One row to sample or score. */
typedef struct cake_sample_row {
    cake_sequence *sequence; /* samples one row at a time. NULL: skip the row */
    bool skip;               /* it has its turn before or after the others */
    bool finite;             /* all scores are finite; if not, there is no output */
    float *score;            /* [n_vocab] changed meanwhile, and restored; NULL: `best` is enough */
    const cake_topk *best;   /* cake_sample_row_topk of them; read if score is NULL */
    enum {
        CAKE_SAMPLE_CHECK,
        CAKE_SAMPLE_SCORE,
        CAKE_SAMPLE_SAMPLE
    } what;     /* each includes the ones before */
    int32_t id; /* in: the token to score; out: the sampled one */
    cake_token_logprob
        logprobs[1 + CAKE_MAX_TOP]; /* out, if the sequence wants logprobs: of id and of the best */
    cake_mask mask;                 /* of a constraint: cake_sampler_constrain */
    const char *stuck;              /* why no token may come next; NULL: some may */
    const uint64_t *allowed;        /* the mask as bits, if the best of these scores are enough; else NULL */
    int32_t rank; /* out, of a token to score, if the sequence wants ranks: 1 + how many are likelier */
} cake_sample_row;

/* Number of best scores, of allowed tokens, that the row needs; 0: all, because of penalties, logprobs or
 * sampling from many. */
int cake_sample_row_topk(const cake_sample_row *row, int n_vocab);

typedef struct cake_sampler cake_sampler;

/* For up to max_row rows of [n_vocab] scores on n_thread threads. */
cake_err cake_sampler_open(int n_vocab, int max_row, int n_thread, cake_sampler **out);
void cake_sampler_close(cake_sampler *sampler);
size_t cake_sampler_bytes(int n_vocab, int max_row, int n_thread);

/* [max_row] the caller fills them before cake_sampler_run. */
cake_sample_row *cake_sampler_rows(cake_sampler *sampler);
/* Finds what the constraints of the first n rows allow: before cake_sample_row_topk and cake_sampler_run.
 * best: the head can find the best of allowed scores (cake_topk). */
void cake_sampler_constrain(cake_sampler *sampler, int n_thread, int n, bool best);
/* Samples the first n rows on n_thread threads, at most as many as open was given. Results do not depend on
 * the number of rows and threads. */
void cake_sampler_run(cake_sampler *sampler, int n_thread, int n);

#endif
