/* SPDX-License-Identifier: Apache-2.0
 *
 * Speculative decoding (Leviathan, Kalman and Matias 2023): tokens that probably come next are sent with the
 * latest one, and the model checks them all in one pass. Here a draft counts only if it is the very token
 * that would have been sampled, so answers do not depend on drafts.
 *
 * Drafts come from the sequence itself, or from answers that ended before. How many are sent depends on how
 * often such drafts were right and on how much longer a wave takes with more rows.
 */
#ifndef CAKE_ENGINE_SPECULATION_H
#define CAKE_ENGINE_SPECULATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

enum {
    CAKE_MAX_DRAFT = 16,  /* tokens of one sequence in a wave */
    CAKE_MAX_DRAFTS = 32, /* and of all together */
    CAKE_MAX_OFFERED = 3, /* tokens in a row that the model itself expects */
};

typedef struct cake_speculation cake_speculation;

/* For n_slot sequences and tokens below n_vocab. */
cake_speculation *cake_speculation_open(int n_slot, int n_vocab);
void cake_speculation_close(cake_speculation *speculation);

/* Another sequence is in the slot. */
void cake_speculation_begin(cake_speculation *speculation, int slot);
/* The answer in the slot, ids from n_prompt on, has ended; others may be like it. */
void cake_speculation_end(cake_speculation *speculation, const cake_ids *ids, int n_prompt);

/* The model itself expects a token at a position of the sequence in a slot, and may then expect one at the
 * next position, too. */
void cake_speculation_offer(cake_speculation *speculation, int slot, int pos, int32_t id);
/* Whether tokens that the model expects are worth knowing, in waves of n sequences. */
bool cake_speculation_wants(const cake_speculation *speculation, int n);
/* Whether that of a token more, behind n_offered tokens of a sequence, is. */
bool cake_speculation_wants_more(const cake_speculation *speculation, int n_offered);
/* Finds drafts for the sequence in a slot, at most `most`. */
void cake_speculation_find(cake_speculation *speculation, int slot, const cake_ids *ids, int most);
/* Decides how many of those found are sent with a wave of slots [n], at most `most` in all. */
void cake_speculation_choose(cake_speculation *speculation, const int32_t *slots, int n, int most);
int cake_speculation_length(const cake_speculation *speculation, int slot); /* of the draft to be sent */
/* The token of a row that is sent, known or drafted; positions ascend. The schedule may send fewer. */
int32_t cake_speculation_send(cake_speculation *speculation, int slot, const cake_ids *ids, int pos);
/* Whether a row at a position was given the token that the sequence has there, which is its latest one. */
bool cake_speculation_holds(const cake_speculation *speculation, int slot, const cake_ids *ids, int pos);
/* The sequence has got a token at a position: counts whether a draft for it was right. */
void cake_speculation_learn(cake_speculation *speculation, int slot, int pos, int32_t id);
/* The slot's draft has been checked. */
void cake_speculation_drop(cake_speculation *speculation, int slot);
/* A wave of generated rows took so many seconds. */
void cake_speculation_timed(cake_speculation *speculation, int n_row, double seconds);

typedef struct cake_speculation_stats {
    int64_t drafted, accepted; /* tokens */
} cake_speculation_stats;
cake_speculation_stats cake_speculation_statistics(const cake_speculation *speculation);

#endif
