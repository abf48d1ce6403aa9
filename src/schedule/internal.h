/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the schedule's files only: schedule.c (slots and eviction), prefix_cache.c (pages shared between
 * sequences), kv_admission.c (enough pages until all have ended?), budget.c (cost of a wave), next_batch.c
 * (rows of a wave), changes.c (changes that a wave carries).
 */
#ifndef CAKE_SCHEDULE_INTERNAL_H
#define CAKE_SCHEDULE_INTERNAL_H

#include "schedule/page_pool.h"
#include "schedule/prefix_tree.h"
#include "schedule/schedule.h"

/* A slot: the sequence in it, how far it is, and its pages. */
typedef struct cake_slot_state {
    bool used;
    bool running;   /* it has pages; else it waits for them */
    bool in_flight; /* it has rows in waves in flight */
    bool evict;     /* to be evicted when its rows in flight are complete */
    bool wait_page; /* it waits for a page that a pending eviction will free */
    int flags;
    int lane;
    int last_lane; /* in_flight: the lane of the latest such wave */
    int64_t age;   /* number of its admission; a stem counts as the youngest */
    int n_prompt, n_token;
    int n_sent;  /* vLLM: num_computed_tokens. Its first n_sent tokens, cached ones included, need no row */
    int n_draft; /* tokens behind n_token that the next wave checks */
    int spare;   /* with recurrent layers: 1 + the spare state from before such rows; 0: none */
    int first, end;  /* of that state: positions of the first of these rows, and behind the last one */
    int n_again;     /* rows of tokens before the latest one, which that state needs again */
    int max_len;     /* maximum of tokens, prompt included */
    int n_scored;    /* CAKE_SLOT_SCORE_PROMPT: prompt rows that were sent to be scored, or need no score */
    int max_sent;    /* maximum of n_sent, which an eviction resets */
    int n_mapped;    /* pages of each group that CAKE_CHANGE_MAPs, sent or pending, have mapped */
    int n_published; /* pages of its prompt that others can share */
    int n_chain;     /* pages of the prompt that could be shared */
    const int32_t *chain; /* [n_chain] the nodes of these pages, borrowed */
    cake_page_list page_list[CAKE_MAX_KV_GROUPS];
} cake_slot_state;

typedef struct cake_lane {
    bool in_flight;
    int n;          /* sequences */
    int32_t *slots; /* [n] oldest first */
    cake_batch batch;
} cake_lane;

/* A saved recurrent state at the end of a node. Its slot follows those of the sequences. */
typedef struct cake_saved {
    int32_t node; /* -1: none */
    int64_t used; /* the last batch that used it */
} cake_saved;

/* Expected growth of a sequence: tokens now and at its end; waves until its end; pages that it holds or has
 * reserved, and how many of these are shared. */
typedef struct cake_kv_forecast {
    int n_token, end, last, has, shared;
} cake_kv_forecast;

struct cake_schedule {
    cake_schedule_shape shape;
    cake_prefix_tree *prefixes; /* borrowed; NULL: no prefix cache */
    cake_page_pool pages[CAKE_MAX_KV_GROUPS];
    cake_slot_state *seqs; /* [n_slot] */
    cake_lane *lanes;      /* [n_lane] */
    int n_slot, n_active;  /* n_active: sequences, waiting or running */
    int n_waiting, n_wait_page;
    cake_slot_state *stem;     /* NULL: there is none */
    int64_t admitted, n_batch; /* sequences, batches so far */
    double mean_answer;        /* moving average of the length of answers that may end at any time */
    cake_schedule_stats stats;
    cake_change *pending;      /* [n_pending] changes that the next wave carries, whatever its lane */
    int n_pending, n_attached; /* n_attached: pages of the prefix cache that the next batch maps */
    cake_saved *saved;         /* [shape.n_saved] */
    bool *spare;               /* [shape.n_spare] in use */
    int64_t *sent;             /* [n_node] the last batch with rows of the node */
    int32_t *maker;            /* [n_node] the slot that will compute the state at the node's end */
    int n_node;
    cake_kv_forecast *forecasts; /* [n_slot] scratch of kv_admission.c */
    int prefill_waves;           /* of kv_admission.c: waves of each lane before all sequences generate */
};

/* Adds a change of page tables or states to those that the next wave carries. */
void cake_schedule_push_change(cake_schedule *schedule, cake_change change);
/* Of a sequence whose draft has been checked: unless all of it was right, its state is that from before. */
void cake_schedule_settle_draft(cake_schedule *schedule, cake_slot_state *seq);
/* Pages of a group that it needs for its tokens and one more. */
int cake_schedule_need(const cake_schedule *schedule, const cake_slot_state *seq, int group);
/* Starts a waiting sequence if enough pages are available and no older one waits. An idle stem is evicted for
 * it: the stem may be the only one that holds pages. */
void cake_schedule_start(cake_schedule *schedule, cake_slot_state *seq);
/* Evicts the youngest sequence. False if seq has to wait: it was the youngest itself, or the youngest has
 * rows in flight and is evicted later. */
bool cake_schedule_make_room(cake_schedule *schedule, cake_slot_state *seq);
void cake_schedule_wait_page(cake_schedule *schedule, cake_slot_state *seq, bool wait_page);

/* Counts the leading pages that need not be computed: own pages, then cached ones. It ends where the next row
 * misses no page that it sees; pages outside its window may be missing. seq->n_sent is a multiple of
 * CAKE_PAGE. */
int cake_prefix_cache_match(const cake_schedule *schedule, const cake_slot_state *seq);
/* Attaches the matching cached pages to it, and the state at their end. */
void cake_prefix_cache_attach(cake_schedule *schedule, cake_slot_state *seq);
/* True if another sequence is already computing the pages that it would compute next. */
bool cake_prefix_cache_defer(cake_schedule *schedule, const cake_slot_state *seq);
/* The position, at most `end`, where its rows must end so that the state there can be saved for others. */
int cake_prefix_cache_split(cake_schedule *schedule, const cake_slot_state *seq, int end);
/* Records that its rows [from, n_sent) are in this wave. */
void cake_prefix_cache_mark_sent(cake_schedule *schedule, const cake_slot_state *seq, int from);
/* Called when the batch is complete: the pages that it computes can be shared from the next wave on. */
void cake_prefix_cache_publish(cake_schedule *schedule, cake_slot_state *seq);

/* The cost that a wave should have now: that of the chunk, or of the most expensive wave needed. */
double cake_budget_wave(const cake_schedule *schedule);
/* The cost of a generated row at a position. */
double cake_budget_generated(const cake_schedule *schedule, int pos);
/* The end of the sequence's rows in a wave, within a cost budget and a number of rows; *cost: their cost. */
int cake_budget_reach(const cake_schedule *schedule, const cake_slot_state *seq, double budget, int rows,
                      double *cost);
/* True if its only row to send is that of its latest token, but for those that a draft makes again. */
bool cake_budget_generates(const cake_slot_state *seq);

/* True if all running sequences and seq are expected to reach their ends without eviction. */
bool cake_kv_admission_fits(cake_schedule *schedule, const cake_slot_state *seq);
/* Updates mean_answer by a sequence that has ended. */
void cake_kv_admission_learn(cake_schedule *schedule, const cake_slot_state *seq);

#endif
