/* SPDX-License-Identifier: Apache-2.0
 *
 * What the schedule's files share: schedule.c (who has a slot and pages), share.c (who begins with what
 * others have made), forecast.c (who can have slot and pages to the end), budget.c (what a wave may cost),
 * fill.c (which rows go). Nobody else includes this.
 */
#ifndef CAKE_RUN_SCHEDULE_PARTS_H
#define CAKE_RUN_SCHEDULE_PARTS_H

#include "run/pages.h"
#include "run/prefixes.h"
#include "run/schedule.h"

typedef struct cake_seq {
    bool used, active;
    bool riding;  /* rows of it are in waves under way */
    bool evict;   /* it is evicted as soon as they are back */
    bool starved; /* waits for a page that an eviction under way will free */
    int flags;
    int lane;
    int carrier; /* riding: the lane of the latest such wave */
    int64_t age; /* order of admission; a stem counts as the youngest */
    int n_prompt, known, done;
    int most;             /* tokens that it can have in all */
    int scored;           /* prompt rows whose scores were asked for, if all are wanted */
    int covered;          /* prompt rows that were ever sent or shared */
    int told;             /* pages of each class that the stages know of */
    int kept;             /* pages of its prompt that others may share, as far as it can tell */
    int n_chain;          /* pages of the prompt that could be shared */
    const int32_t *chain; /* [n_chain] the nodes of these pages, borrowed */
    cake_held held[CAKE_MAX_CLASS];
} cake_seq;

typedef struct cake_lane {
    bool away;
    int n;          /* sequences */
    int32_t *slots; /* [n] oldest first */
    cake_batch batch;
} cake_lane;

/* A recurrent state that is kept for the end of a node, in a slot behind those of the sequences. */
typedef struct cake_saved {
    int32_t node; /* -1: none */
    int64_t used; /* the latest fill that had to do with it */
} cake_saved;

/* What a sequence is expected to become: tokens now and at its end, waves until it has ended, pages that it has or was
 * promised, those of them that others hold too. */
typedef struct cake_future {
    int known, end, last, has, shared;
} cake_future;

struct cake_schedule {
    cake_schedule_shape shape;
    cake_prefixes *prefixes; /* borrowed; NULL: nothing is shared */
    cake_pages pages[CAKE_MAX_CLASS];
    cake_seq *seqs;   /* [n_slot] */
    cake_lane *lanes; /* [n_lane] */
    int n_slot, n_active, n_waiting, n_starved;
    cake_seq *stem; /* NULL: there is none */
    int64_t admitted, fills;
    double typical; /* tokens of an answer that could have ended any time */
    cake_schedule_stats stats;
    cake_change *pending;     /* [n_pending] changes that leave with the next wave, whichever it is */
    int n_pending, n_adopted; /* n_adopted: pending changes that map pages of others */
    cake_saved *saved;        /* [shape.n_saved] */
    int64_t *sent;            /* [n_node] by node: the fill in which rows of it went last */
    int32_t *maker;           /* [n_node] by node: the slot that is to make the state at its end */
    int n_node;
    cake_future *futures; /* [n_slot] the forecast's (forecast.c) */
    int behind;           /* the forecast's: waves of each lane before all sequences generate */
};

void cake_schedule_push(cake_schedule *schedule, cake_change change);
/* The pages of a class for all that a sequence knows, and one to grow. */
int cake_schedule_need(const cake_schedule *schedule, const cake_seq *seq, int class);
/* Starts a waiting sequence if its pages are there and nobody older starves for them. */
void cake_schedule_activate(cake_schedule *schedule, cake_seq *seq);
/* Takes the pages of the youngest. False if seq has to come back later: then either it was evicted itself, or the
 * youngest will be when its lane is back. */
bool cake_schedule_make_room(cake_schedule *schedule, cake_seq *seq);
void cake_schedule_starve(cake_schedule *schedule, cake_seq *seq, bool starved);

/* How many pages from its beginning a sequence whose done is a multiple of CAKE_PAGE could have without computing
 * more of them: all that its rows behind them can see is kept. At least those it has. */
int cake_share_reach(const cake_schedule *schedule, const cake_seq *seq);
/* Makes as many pages its own as it can, and its state that at their end. */
void cake_share_adopt(cake_schedule *schedule, cake_seq *seq);
/* Whether what it would compute next is on its way already. */
bool cake_share_wait(cake_schedule *schedule, const cake_seq *seq);
/* Where its rows must end before end, so that the state there can be saved for others. */
int cake_share_cut(cake_schedule *schedule, const cake_seq *seq, int end);
/* Rows [from, done) of it are in this wave. */
void cake_share_sent(cake_schedule *schedule, const cake_seq *seq, int from);
/* The wave is complete: what its rows make can be shared from the next one on. */
void cake_share_keep(cake_schedule *schedule, cake_seq *seq);

/* What a wave should cost now: what the chunk costs, or, of all that has to be sent, the dearest. */
double cake_budget_wave(const cake_schedule *schedule);
/* The cost of a row behind a prompt. */
double cake_budget_generated(const cake_schedule *schedule, int pos);
/* Where the rows of a wave end that such a budget and so many rows have room for, and what they cost. */
int cake_budget_reach(const cake_schedule *schedule, const cake_seq *seq, double budget, int rows,
                      double *cost);
/* Whether it has one row to send, that of its latest token. */
bool cake_budget_generates(const cake_seq *seq);

/* Whether those that are active and a sequence can go on to their ends, as far as that can be foreseen. */
bool cake_forecast_fits(cake_schedule *schedule, const cake_seq *seq);
/* A sequence has ended. */
void cake_forecast_learn(cake_schedule *schedule, const cake_seq *seq);

#endif
