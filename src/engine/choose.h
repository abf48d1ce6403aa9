/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores become tokens and log probabilities, the rows of a wave side by side: of what the root does, this
 * alone grows with the vocabulary.
 */
#ifndef CAKE_ENGINE_CHOOSE_H
#define CAKE_ENGINE_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "request/sequence.h"
#include "types/topk.h"

/* What the scores of one row come to. */
typedef struct cake_draw {
    /* Whose past and parameters the scores meet; a sequence that samples has one row only. NULL: nothing is
     * done. */
    cake_sequence *sequence;
    bool finite;           /* all scores are finite; if not, nothing is out */
    float *score;          /* [n_vocab] changed meanwhile, and restored; NULL: `best` is all that is needed */
    const cake_topk *best; /* as many as cake_draw_needs says; read where there is no score */
    enum {
        CAKE_CHOOSE_CHECK,
        CAKE_CHOOSE_SCORE,
        CAKE_CHOOSE_SAMPLE
    } what;     /* each includes the ones before */
    int32_t id; /* the token that is scored; sampled: out */
    /* Out, if the sequence wants log probabilities: those of id and of the best. */
    cake_scored scored[1 + CAKE_MAX_TOP];
} cake_draw;

/* How many of the best scores have to be known; 0: all scores, since they are changed, become log
 * probabilities, or many are drawn from. */
int cake_draw_needs(const cake_draw *draw, int n_vocab);

typedef struct cake_chooser cake_chooser;

/* For up to max_row rows of [n_vocab] scores on n_thread threads. */
cake_err cake_chooser_open(int n_vocab, int max_row, int n_thread, cake_chooser **out);
void cake_chooser_close(cake_chooser *chooser);
size_t cake_chooser_bytes(int n_vocab, int max_row, int n_thread);

/* Room for what comes next: [max_row]. */
cake_draw *cake_chooser_rows(cake_chooser *chooser);
/* Fills in the first n of them, by as many threads as open was told or fewer. The same, whatever the number
 * of rows and threads. */
void cake_chooser_run(cake_chooser *chooser, int n_thread, int n);

#endif
