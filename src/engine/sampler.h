/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores become tokens and log probabilities, the rows of a wave side by side: of what the root does, this
 * alone grows with the vocabulary.
 */
#ifndef CAKE_ENGINE_SAMPLER_H
#define CAKE_ENGINE_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "request/sequence.h"
#include "types/topk.h"

/* What the scores of one row come to. */
typedef struct cake_sample_row {
    /* Whose past and parameters the scores meet; a sequence that samples has one row only. NULL: nothing is
     * done. */
    cake_sequence *sequence;
    bool finite;           /* all scores are finite; if not, nothing is out */
    float *score;          /* [n_vocab] changed meanwhile, and restored; NULL: `best` is all that is needed */
    const cake_topk *best; /* as many as cake_sample_row_topk says; read where there is no score */
    enum {
        CAKE_SAMPLE_CHECK,
        CAKE_SAMPLE_SCORE,
        CAKE_SAMPLE_SAMPLE
    } what;     /* each includes the ones before */
    int32_t id; /* the token that is scored; sampled: out */
    /* Out, if the sequence wants log probabilities: those of id and of the best. */
    cake_scored scored[1 + CAKE_MAX_TOP];
} cake_sample_row;

/* How many of the best scores have to be known; 0: all scores, since they are changed, become log
 * probabilities, or many are drawn from. */
int cake_sample_row_topk(const cake_sample_row *draw, int n_vocab);

typedef struct cake_sampler cake_sampler;

/* For up to max_row rows of [n_vocab] scores on n_thread threads. */
cake_err cake_sampler_open(int n_vocab, int max_row, int n_thread, cake_sampler **out);
void cake_sampler_close(cake_sampler *sampler);
size_t cake_sampler_bytes(int n_vocab, int max_row, int n_thread);

/* Room for what comes next: [max_row]. */
cake_sample_row *cake_sampler_rows(cake_sampler *sampler);
/* Fills in the first n of them, by as many threads as open was told or fewer. The same, whatever the number
 * of rows and threads. */
void cake_sampler_run(cake_sampler *sampler, int n_thread, int n);

#endif
