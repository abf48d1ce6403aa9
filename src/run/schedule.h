/* SPDX-License-Identifier: Apache-2.0
 *
 * Which rows travel in which wave, and which page keeps what. Pure: it knows lengths, never tokens, text or
 * time. The root of a replica asks; its answers go into wave headers, where every stage follows them.
 *
 * A sequence lives in a slot and in a lane. It is waiting (no pages) or active. `known` tokens are prompt and
 * generated ones; `done` of them have been sent through the layers. When known == done + 1 and everything
 * before was sent, the last token's row yields the scores of the next.
 */
#ifndef CAKE_RUN_SCHEDULE_H
#define CAKE_RUN_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/wave.h"

typedef struct cake_schedule cake_schedule;

typedef struct cake_schedule_shape {
    int n_lane;
    int lane_seqs; /* sequences a lane holds; slots = n_lane * lane_seqs */
    int chunk;     /* rows a wave should have */
    int max_tok;   /* rows a wave may have: at least lane_seqs + CAKE_PAGE */
    int n_page;    /* pages that exist */
} cake_schedule_shape;

/* The content of one wave; arrays are the schedule's, valid until the next fill of the same lane. */
typedef struct cake_batch {
    int n_tok, n_page, n_score, n_overflow;
    cake_row *rows;    /* [max_tok] */
    cake_page *pages;  /* [max_tok] */
    int32_t *score;    /* [lane_seqs] rows whose scores are wanted ... */
    int32_t *slot;     /* [lane_seqs] ... and the sequences they continue */
    int32_t *overflow; /* [lane_seqs] slots that cannot go on: alone they need more pages than there are */
} cake_batch;

cake_schedule *cake_schedule_open(const cake_schedule_shape *shape);
void cake_schedule_close(cake_schedule *schedule);

/* Whether a further sequence may be admitted now. One that waits for pages is enough to say no. */
bool cake_schedule_room(const cake_schedule *schedule);
/* Gives a sequence of n_prompt tokens a slot in the lane with the fewest. */
int cake_schedule_admit(cake_schedule *schedule, int n_prompt);
int cake_schedule_active(const cake_schedule *schedule); /* admitted and not retired */

/* Decides the next wave of a lane that is not under way. n_tok 0: nothing can be sent now. Otherwise the lane
 * is under way until cake_schedule_back. If there is overflow there is nothing else: the caller retires those
 * slots and asks again. */
const cake_batch *cake_schedule_fill(cake_schedule *schedule, int lane);
void cake_schedule_back(cake_schedule *schedule, int lane);
bool cake_schedule_away(const cake_schedule *schedule, int lane);
/* One more token of the sequence is known; its lane is not under way. */
void cake_schedule_token(cake_schedule *schedule, int slot);
/* The sequence is finished: slot and pages are free. Its lane is not under way. */
void cake_schedule_retire(cake_schedule *schedule, int slot);

int64_t cake_schedule_evictions(const cake_schedule *schedule);

#endif
