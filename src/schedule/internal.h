/* SPDX-License-Identifier: Apache-2.0
 *
 * What the schedule's files share: schedule.c (who has a slot and pages), prefix_cache.c (who begins with
 * what others have made), kv_admission.c (who can have slot and pages to the end), budget.c (what a wave
 * may cost), next_batch.c (which rows go). Nobody else includes this.
 */
#ifndef CAKE_SCHEDULE_INTERNAL_H
#define CAKE_SCHEDULE_INTERNAL_H

#include "schedule/page_pool.h"
#include "schedule/prefix_tree.h"
#include "schedule/schedule.h"

typedef struct cake_seq {
    bool used, active;
    bool in_flight; /* rows of it are in waves under way */
    bool evict;     /* it is evicted as soon as its rows under way are back */
    bool wait_page; /* it waits for a page that an eviction under way will free */
    int flags;
    int lane;
    int last_lane; /* in_flight: the lane of the latest such wave */
    int64_t age;   /* number of admission; a stem counts as the youngest */
    int n_prompt, n_token, n_computed;
    int most;             /* the most tokens that it can have in all */
    int scored;           /* prompt rows whose scores were asked for so far, if all are wanted */
    int covered;          /* prompt rows that were ever sent or shared */
    int announced;        /* pages of each group that the stages have been announced of */
    int kept;             /* pages of its prompt that others may share already */
    int n_chain;          /* pages of the prompt that could be shared */
    const int32_t *chain; /* [n_chain] the nodes of these pages, borrowed */
    cake_page_list held[CAKE_MAX_KV_GROUPS];
} cake_seq;

typedef struct cake_lane {
    bool in_flight;
    int n;          /* sequences */
    int32_t *slots; /* [n] oldest first */
    cake_batch batch;
} cake_lane;

/* A recurrent state that is kept for the end of a node, in a slot behind those of the sequences. */
typedef struct cake_saved {
    int32_t node; /* -1: none */
    int64_t used; /* the latest fill that used it */
} cake_saved;

/* What a sequence is expected to become: tokens now, and at its end; waves until its end; pages that it has
 * or was promised, and how many of these others hold too. */
typedef struct cake_kv_forecast {
    int n_token, end, last, has, shared;
} cake_kv_forecast;

struct cake_schedule {
    cake_schedule_shape shape;
    cake_prefix_tree *prefixes; /* borrowed; NULL: nothing is shared */
    cake_page_pool pages[CAKE_MAX_KV_GROUPS];
    cake_seq *seqs;   /* [n_slot] */
    cake_lane *lanes; /* [n_lane] */
    int n_slot, n_active, n_waiting, n_wait_page;
    cake_seq *stem; /* NULL: there is none */
    int64_t admitted, fills;
    double typical; /* the usual length of answers that may end at any time */
    cake_schedule_stats stats;
    cake_change *pending;     /* [n_pending] changes that leave with the next wave, whichever it is */
    int n_pending, n_adopted; /* n_adopted: pending changes that map pages of others */
    cake_saved *saved;        /* [shape.n_saved] */
    int64_t *sent;            /* [n_node] by node: the fill in which rows of it went last */
    int32_t *maker;           /* [n_node] by node: the slot that is to make the state at its end */
    int n_node;
    cake_kv_forecast *futures; /* [n_slot] the forecast's (kv_admission.c) */
    int behind;                /* the forecast's: waves of each lane before all sequences generate */
};

void cake_schedule_push(cake_schedule *schedule, cake_change change);
/* How many pages of a group it needs for all tokens that it knows and one more. */
int cake_schedule_need(const cake_schedule *schedule, const cake_seq *seq, int group);
/* Starts a waiting sequence, if its pages are there and no older one waits for pages. */
void cake_schedule_activate(cake_schedule *schedule, cake_seq *seq);
/* Evicts the youngest sequence. False if seq has to wait: it was the youngest and was evicted itself, or the
 * youngest will be evicted when its lane is back. */
bool cake_schedule_make_room(cake_schedule *schedule, cake_seq *seq);
void cake_schedule_wait_page(cake_schedule *schedule, cake_seq *seq, bool wait_page);

/* How many pages from its beginning a sequence whose done is a multiple of CAKE_PAGE could have without
 * computing more of them: all that its rows behind them can see is kept. At least those it has. */
int cake_prefix_cache_match(const cake_schedule *schedule, const cake_seq *seq);
/* Gives it as many pages of others as it can share, and the state at their end. */
void cake_prefix_cache_attach(cake_schedule *schedule, cake_seq *seq);
/* Whether another sequence is already computing what it would compute next. */
bool cake_prefix_cache_defer(cake_schedule *schedule, const cake_seq *seq);
/* Where its rows must end, at `end` or before, so that the state there can be saved for others. */
int cake_prefix_cache_split(cake_schedule *schedule, const cake_seq *seq, int end);
/* Takes note that its rows [from, done) are in this wave. */
void cake_prefix_cache_mark_sent(cake_schedule *schedule, const cake_seq *seq, int from);
/* Called when the wave is complete: what its rows make can be shared from the next wave on. */
void cake_prefix_cache_publish(cake_schedule *schedule, cake_seq *seq);

/* What a wave should cost now: as much as the chunk, or as the dearest one of what has to be sent. */
double cake_budget_wave(const cake_schedule *schedule);
/* The cost of a generated row at a position. */
double cake_budget_generated(const cake_schedule *schedule, int pos);
/* Where the sequence's rows of a wave end, if they may cost so much and be so many; *cost: what they cost. */
int cake_budget_reach(const cake_schedule *schedule, const cake_seq *seq, double budget, int rows,
                      double *cost);
/* Whether all that it has to send is the row of its latest token. */
bool cake_budget_generates(const cake_seq *seq);

/* Whether all active sequences and seq can go on to their ends, as far as that can be foreseen. */
bool cake_kv_admission_fits(cake_schedule *schedule, const cake_seq *seq);
/* Learns from a sequence that has ended how long answers are. */
void cake_kv_admission_learn(cake_schedule *schedule, const cake_seq *seq);

#endif
