/* SPDX-License-Identifier: Apache-2.0
 *
 * What a request and the tokens of its sequence change about the scores of the next token: logit_bias, then
 * repetition, presence and frequency penalties; and min_tokens, which forbids to end. The list holds a token
 * once, however often it occurs, so that a step costs what differs from the model's scores, never n_vocab.
 */
#ifndef CAKE_SAMPLE_PENALTIES_H
#define CAKE_SAMPLE_PENALTIES_H

#include <stdint.h>

#include "types/params.h"

typedef struct cake_penalties cake_penalties;

/* Owned. NULL if the request changes no score, which all functions below take calmly. params: borrowed, every
 * field set but max_tokens, seed, logprobs; prompt [n_prompt]; eos [n_eos]: with stop_ids, what min_tokens
 * forbids. All ids are below the n_vocab of the scores. */
cake_penalties *cake_penalties_open(const cake_params *params, const int32_t *prompt, int n_prompt,
                                    const int32_t *eos, int n_eos);
void cake_penalties_close(cake_penalties *penalties);
/* A token was generated. */
void cake_penalties_add(cake_penalties *penalties, int32_t id);

/* Changes score [n_vocab] in place; undo puts back what apply found. With s the score of a token of the list:
 * s + bias; if it occurred in the prompt or since, s / repetition_penalty where s > 0, else s *
 * repetition_penalty (Keskar et al. 2019, as in transformers); if it was generated c > 0 times, s - c *
 * frequency_penalty - presence_penalty (OpenAI's API reference). What min_tokens forbids is -infinity,
 * and so is a token whose bias is; one that may not be the first only before there is a first. */
void cake_penalties_apply(cake_penalties *penalties, float *score);
void cake_penalties_undo(const cake_penalties *penalties, float *score);

#endif
