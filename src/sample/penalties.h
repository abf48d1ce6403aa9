/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes that a request and the tokens of its sequence make to the scores of the next token: logit_bias,
 * then repetition, presence and frequency penalties; and min_tokens, which forbids the end. Each token is
 * listed once, however often it occurs, so that the cost of a step depends on the changes, not on n_vocab.
 */
#ifndef CAKE_SAMPLE_PENALTIES_H
#define CAKE_SAMPLE_PENALTIES_H

#include <stdint.h>

#include "types/params.h"

typedef struct cake_penalties cake_penalties;

/* Owned. NULL if the request changes no score; all functions below accept NULL. params: borrowed, every field
 * set but max_tokens, seed, logprobs; prompt [n_prompt]; eos [n_eos]: forbidden by min_tokens, as are
 * stop_ids. All ids are below the n_vocab of the scores. */
cake_penalties *cake_penalties_open(const cake_params *params, const int32_t *prompt, int n_prompt,
                                    const int32_t *eos, int n_eos);
void cake_penalties_close(cake_penalties *penalties);
/* To be called for every generated token. */
void cake_penalties_add(cake_penalties *penalties, int32_t id);

/* Changes score [n_vocab] in place; undo restores it. With s the score of a listed token: s + bias; if it
 * occurred in the prompt or since, s / repetition_penalty where s > 0, else s * repetition_penalty (Keskar et
 * al. 2019, as in transformers); if it was generated c > 0 times, s - c * frequency_penalty -
 * presence_penalty (OpenAI's API reference). -infinity for tokens that min_tokens forbids, for a bias of
 * -infinity, and, before the first token, for those that may not be first. */
void cake_penalties_apply(cake_penalties *penalties, float *score);
void cake_penalties_undo(const cake_penalties *penalties, float *score);

#endif
