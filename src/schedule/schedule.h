/* SPDX-License-Identifier: Apache-2.0
 *
 * Which rows travel in which wave, and which page keeps what. Pure: it knows lengths and which prompts begin
 * alike, never tokens, text or time. The root of a replica asks; its answers go into wave headers, where
 * every stage follows them.
 *
 * A sequence lives in a slot and in a lane. It is waiting (no pages) or active. `known` tokens are prompt and
 * generated ones; `done` of them have been sent through the layers. When known == done + 1 and everything
 * before was sent, the last token's row yields the scores of the next.
 *
 * Several answers to one prompt: a stem is a sequence that only holds the prompt; forks share its pages.
 * Prompts that begin alike share what of it was sent through the layers: pages, and recurrent states where
 * such were saved.
 */
#ifndef CAKE_SCHEDULE_SCHEDULE_H
#define CAKE_SCHEDULE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "schedule/prefix_tree.h"
#include "slice/cost.h"
#include "types/wave.h"

typedef struct cake_schedule cake_schedule;

/* What rows cost beside their products, in rows: each position of a group that is seen, by prompts and by
 * rows behind them; what the latter read for themselves; scores. Zeros: every row costs the same. */
typedef struct cake_row_cost {
    double prompt_seen[CAKE_MAX_KV_GROUPS], generated_seen[CAKE_MAX_KV_GROUPS];
    double generated, score;
} cake_row_cost;

typedef struct cake_schedule_shape {
    int n_lane;
    int lane_seqs; /* sequences that a lane holds; there are n_lane * lane_seqs slots */
    int chunk;     /* rows that a wave should have, or as many as cost the same */
    int max_tok;   /* rows that a wave may have: at least lane_seqs + CAKE_PAGE */
    int n_group;   /* KV cache groups */
    int window[CAKE_MAX_KV_GROUPS];
    int n_page[CAKE_MAX_KV_GROUPS]; /* the pages of each group that exist */
    bool states;                    /* the model has recurrent layers: forks copy their states */
    int n_saved; /* states that can be kept for other sequences, in slots behind those of the sequences */
    bool share;  /* prompts that begin alike share pages */
    cake_row_cost cost;
} cake_schedule_shape;

/* Sets the costs of a shape, from those of all layers and those of the scores of a row. */
void cake_schedule_weigh(cake_schedule_shape *shape, const cake_cost *all, double score);

/* The content of one wave; arrays are the schedule's, valid until the next fill of the same lane. */
typedef struct cake_batch {
    int n_tok, n_change, n_score, n_overflow;
    cake_row *rows;       /* [max_tok] */
    cake_change *changes; /* [cake_schedule_changes] */
    int32_t *score;       /* [n_score] rows whose scores are wanted; room for max_tok */
    int32_t *slot;        /* [n_score] the sequences of these rows */
    int32_t *overflow;    /* [n_overflow] slots that cannot go on: alone they need more pages than exist */
} cake_batch;

/* The most changes that one wave may carry. */
int cake_schedule_changes(const cake_schedule_shape *shape);

/* prefixes: has the nodes of prompts; outlives the schedule. */
cake_schedule *cake_schedule_open(const cake_schedule_shape *shape, cake_prefix_tree *prefixes);
void cake_schedule_close(cake_schedule *schedule);

/* Whether a further sequence may be admitted now: not while any waits for pages. */
bool cake_schedule_room(const cake_schedule *schedule);

enum {
    CAKE_SEQ_STEM = 1,   /* it only holds its prompt, until it is retired; one at a time */
    CAKE_SEQ_SCORED = 2, /* the scores of all its prompt rows are wanted, once each */
    CAKE_SEQ_AGAIN = 4,  /* its prompt was counted before, so what it shares is not counted again */
    CAKE_SEQ_SURE = 8    /* its answer will have all of its tokens */
};
/* How many pages of a prompt others may share: its last token is always computed. */
int cake_schedule_chain(int n_prompt);
/* Gives a sequence of n_prompt tokens, which becomes `most` tokens at most, a slot in the lane with the
 * fewest. chain: [cake_schedule_chain(n_prompt)] the nodes of its prompt, which stay until it is retired. */
int cake_schedule_admit(cake_schedule *schedule, int n_prompt, int most, const int32_t *chain, int flags);
/* The same for a sequence that has `known` tokens already: those behind the prompt are replayed. */
int cake_schedule_resume(cake_schedule *schedule, int n_prompt, int known, int most, const int32_t *chain,
                         int flags);
enum { CAKE_FORK_LATER = -1, CAKE_FORK_NEVER = -2 };
/* Gives a sequence that begins with the stem's prompt a slot in a lane that is not under way: its prompt
 * counts as sent, and its next token is to be sampled from the scores of the stem's last row.
 * CAKE_FORK_LATER: the stem's prompt is not through, or others hold what is needed. CAKE_FORK_NEVER: nobody
 * else does, and there is no room beside the stem; without it there may be. */
int cake_schedule_fork(cake_schedule *schedule, int stem);
int cake_schedule_active(const cake_schedule *schedule); /* admitted and not retired */

/* Decides the next wave of a lane that is not under way. n_tok 0: nothing can be sent now. Otherwise the
 * lane is under way until cake_schedule_complete. If there is overflow there is nothing else: the caller
 * retires those slots and asks again. */
const cake_batch *cake_schedule_next_batch(cake_schedule *schedule, int lane);
void cake_schedule_complete(cake_schedule *schedule, int lane);
bool cake_schedule_in_flight(const cake_schedule *schedule, int lane);
/* One more token of the sequence is known. Its lane is not under way. */
void cake_schedule_token(cake_schedule *schedule, int slot);
/* Whether rows of the sequence are under way. */
bool cake_schedule_seq_in_flight(const cake_schedule *schedule, int slot);
/* The sequence is finished: frees its slot and pages. It has no rows under way. */
void cake_schedule_retire(cake_schedule *schedule, int slot);

typedef struct cake_schedule_stats {
    int64_t evictions;
    int64_t shared; /* rows of prompts that were not computed */
    int64_t states; /* recurrent states that were copied, those of all layers of a sequence counted as one */
} cake_schedule_stats;
cake_schedule_stats cake_schedule_statistics(const cake_schedule *schedule);

#endif
