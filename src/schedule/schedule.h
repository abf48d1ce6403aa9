/* SPDX-License-Identifier: Apache-2.0
 *
 * Continuous batching: decides the rows of each wave and the owners of each page. Pure: it knows lengths and
 * common prefixes, never tokens, text or time. The engine asks it; its decisions travel in wave headers, and
 * every stage follows them.
 *
 * An active sequence was admitted and not retired: it has a slot and a lane, and is waiting (without pages)
 * or running. Its tokens are those of the prompt and the generated ones. The first n_sent of them need no
 * further row: theirs were sent, and may still be in flight, or came from the prefix cache. The row of the
 * last token gives the scores of the next one.
 *
 * Several answers to one prompt: a stem is a sequence that only holds the prompt; forks share its pages.
 * Prompts with a common prefix share its pages, and saved recurrent states at its end.
 */
#ifndef CAKE_SCHEDULE_SCHEDULE_H
#define CAKE_SCHEDULE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "schedule/prefix_tree.h"
#include "slice/cost.h"
#include "types/wave.h"

typedef struct cake_schedule cake_schedule;

/* Costs of rows in addition to their matrix products, in rows: for each position of a group that a prompt row
 * or a generated row sees; for a generated row's own reads; for scores. Zeros: every row costs the same. */
typedef struct cake_row_cost {
    double prompt_seen[CAKE_MAX_KV_GROUPS], generated_seen[CAKE_MAX_KV_GROUPS];
    double generated, score;
} cake_row_cost;

typedef struct cake_schedule_shape {
    int n_lane;
    int lane_seqs;  /* sequences per lane; there are n_lane * lane_seqs slots */
    int chunk;      /* --chunk, the cost of a wave: that of so many rows at the beginning of a prompt */
    int max_row;    /* maximum rows of a wave, whatever they cost: at least lane_seqs + CAKE_PAGE */
    int n_kv_group; /* KV cache groups */
    int window[CAKE_MAX_KV_GROUPS];
    int n_page[CAKE_MAX_KV_GROUPS]; /* the pages of each group that exist */
    bool states;                    /* the model has recurrent layers: forks copy their states */
    int n_saved; /* states that can be saved for other sequences, in slots after those of the sequences */
    int n_spare; /* states from before the rows of a draft, in slots after those */
    bool
        whole; /* all rows of a prompt are in one wave, since each sees all; then max_row holds the longest */
    bool outputs; /* the outputs of all rows are read, not only those of rows that are scored */
    bool share;   /* prefix cache: prompts with a common prefix share pages */
    int n_draft;  /* drafted tokens that a wave may have, in all; 0: none */
    cake_row_cost cost;
} cake_schedule_shape;

/* Sets shape->cost. all: the costs of all layers together; score: operations of the LM head for one row. */
void cake_schedule_set_costs(cake_schedule_shape *shape, const cake_cost *all, double score);

/* The content of one wave. The schedule owns the arrays; they are valid until the lane's next batch. */
typedef struct cake_batch {
    int n_row, n_change, n_score, n_overflow;
    cake_row *rows;       /* [max_row] */
    cake_change *changes; /* [cake_schedule_changes] */
    int32_t *score_row;   /* [n_score] rows to score; capacity max_row */
    int32_t *score_slot;  /* [n_score] the sequences of these rows */
    int32_t *overflow;    /* [n_overflow] slots that must fail: alone they need more pages than exist */
} cake_batch;

/* Recurrent states of all kinds. */
int cake_schedule_states(const cake_schedule_shape *shape);
/* Maximum of changes that one wave carries. */
int cake_schedule_changes(const cake_schedule_shape *shape);

/* prefixes outlives the schedule. */
cake_schedule *cake_schedule_open(const cake_schedule_shape *shape, cake_prefix_tree *prefixes);
void cake_schedule_close(cake_schedule *schedule);

/* True if a further sequence may be admitted now: not while any waits for pages. */
bool cake_schedule_can_admit(const cake_schedule *schedule);

enum {
    CAKE_SLOT_STEM = 1,         /* it only holds its prompt, until it is retired; one at a time */
    CAKE_SLOT_SCORE_PROMPT = 2, /* tokens of its prompt are scored once: all, or see score_from */
    CAKE_SLOT_SCORE_FIRST = 16, /* only the first row of its prompt is scored, not the last */
    CAKE_SLOT_READMITTED = 4,   /* its prompt was counted before, so shared rows are not counted again */
    CAKE_SLOT_FIXED_LENGTH = 8  /* nothing ends its answer before max_len */
};
/* The number of nodes of a prompt: its full pages, which can be shared. The last token is never among them,
 * since it is always computed. */
int cake_schedule_chain_len(int n_prompt);
/* Admits a sequence of n_prompt tokens, and of max_len at its end, to the lane with the least to do; returns
 * its slot. chain: [cake_schedule_chain_len(n_prompt)] the nodes of its prompt, valid until it is retired;
 * NULL: it shares no pages. */
int cake_schedule_admit(cake_schedule *schedule, int n_prompt, int max_len, const int32_t *chain, int flags);
/* Admits a sequence that has n_token tokens already: the generated ones are replayed. */
int cake_schedule_resume(cake_schedule *schedule, int n_prompt, int n_token, int max_len,
                         const int32_t *chain, int flags);
/* Of a sequence that was just admitted with CAKE_SLOT_SCORE_PROMPT: only the prompt's tokens from `token`,
 * at least 1, are scored, so the pages of those before can be shared. */
void cake_schedule_score_from(cake_schedule *schedule, int slot, int token);
enum { CAKE_FORK_LATER = -1, CAKE_FORK_NEVER = -2 };
/* Admits a sequence with the stem's prompt to a lane that is not in flight: its prompt counts as sent, and
 * its next token is to be sampled from the scores of the stem's last row. Returns its slot. CAKE_FORK_LATER:
 * the stem's prompt is not computed yet, or other sequences hold the pages. CAKE_FORK_NEVER: only the stem
 * holds pages, and too few are left; retire it and admit the sequence instead. */
int cake_schedule_fork(cake_schedule *schedule, int stem);
int cake_schedule_active(const cake_schedule *schedule); /* sequences, waiting or running */

/* Decides the next wave of a lane that is not in flight. n_row 0: nothing can be sent now. Otherwise the lane
 * is in flight until cake_schedule_complete. A batch with overflow has no rows: the caller retires those
 * slots and asks again. */
const cake_batch *cake_schedule_next_batch(cake_schedule *schedule, int lane);
void cake_schedule_complete(cake_schedule *schedule, int lane);
bool cake_schedule_in_flight(const cake_schedule *schedule, int lane);
/* The sequence has one more token. It has no rows in flight. Of rows that were sent for a draft, those up to
 * this token count as sent, and the others as not sent. */
void cake_schedule_token(cake_schedule *schedule, int slot);

/* The slots of a lane that is not in flight, if its next wave has nothing but rows of their answers: their
 * number, and slots [lane_seqs]; else 0. *room: how many rows more it may have. */
int cake_schedule_generating(cake_schedule *schedule, int lane, int32_t *slots, int *room);
/* The next wave has rows of n further tokens of such a sequence, its draft, or as many as there are pages
 * for, and scores them all. With recurrent layers: unless no spare state is left. */
void cake_schedule_draft(cake_schedule *schedule, int slot, int n);

bool cake_schedule_seq_in_flight(const cake_schedule *schedule, int slot);
/* Frees the slot and pages of a sequence without rows in flight. */
void cake_schedule_retire(cake_schedule *schedule, int slot);

typedef struct cake_schedule_stats {
    int64_t evictions;
    int64_t shared; /* prompt rows taken from the prefix cache */
    int64_t states; /* recurrent states copied; all layers of a sequence count as one */
} cake_schedule_stats;
cake_schedule_stats cake_schedule_statistics(const cake_schedule *schedule);

#endif
