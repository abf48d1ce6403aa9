/* SPDX-License-Identifier: Apache-2.0
 *
 * What the root's files share: root.c (lanes and their waves, scores), slots.c (which sequence is in which slot, from its
 * admission to its end). Nobody else includes this.
 */
#ifndef CAKE_RUN_ROOT_PARTS_H
#define CAKE_RUN_ROOT_PARTS_H

#include "base/arena.h"
#include "logits/logits.h"
#include "run/choose.h"
#include "run/root.h"

typedef struct cake_root_lane {
    cake_parcel parcel;      /* what the lane's waves leave in */
    const cake_batch *batch; /* of the wave under way */
    float *body;             /* where a GPU has the lane's, [max_tok, dim]; NULL: in the wave */
} cake_root_lane;

struct cake_root {
    const cake_model *model;
    const cake_config *config;
    const cake_kernels *embed;
    const cake_plan *plan;
    cake_schedule_shape shape;
    int n_thread, n_decode; /* on waves, on those that generate */
    cake_conductor conductor;
    cake_prefixes *prefixes; /* NULL: nothing is shared */
    cake_window window;
    cake_schedule *schedule;
    cake_sequence **seqs;  /* [n_lane * lane_seqs] */
    cake_root_lane *lanes; /* [n_lane] */
    int n_away;
    cake_sequence *lead; /* of several choices, not all of which are begun; NULL */
    int stem;            /* slot that holds the lead's prompt; -1: none, choices are admitted alone */
    bool stem_known;     /* stem_score is */
    cake_err err;
    cake_arena arena;  /* the lanes' waves and what follows */
    cake_arena away;   /* of the GPU that has the embedding: the lanes' bodies, and what follows */
    int32_t *there;    /* [max_tok] ids */
    int32_t *ids;      /* [max_tok] */
    float *stem_score; /* [n_vocab] of the token behind the stem's prompt */
    cake_chooser *chooser;
    cake_logits *logits;
    bool *wanted;    /* [lane_seqs] for each scored row: all of its scores are needed, not only the best */
    cake_best *best; /* [lane_seqs] the best scores of each of these rows */
    bool blamed;     /* which rank gave numbers that are not finite was said */
    cake_root_stats stats;
    cake_trace *trace; /* or NULL */
};

/* What ended just now goes into the trace; its seconds. */
double cake_root_trace(cake_root *root, cake_span_kind kind, double begin, int rows);

/* Up to n requests more. */
void cake_root_read(cake_root *root, int n);
/* Rows of a request's prompt leave, or it is over before any did. */
void cake_root_begin(cake_root *root, cake_sequence *lead);
/* Sequences into slots that are free. One of several choices keeps others from being admitted until all of its choices
 * are. */
void cake_root_admit(cake_root *root);
/* A sequence goes on with the token that was drawn, or ends. */
void cake_root_token(cake_root *root, int slot, const cake_draw *draw);
/* An answer is over. Its request is, when all of its choices are. */
void cake_root_retire(cake_root *root, int slot);
/* The prompt is scored, and nothing else was wanted. */
void cake_root_retire_prompt(cake_root *root, int slot);
/* A sequence alone is more than the KV memory holds. */
void cake_root_overflow(cake_root *root, int slot);

#endif
