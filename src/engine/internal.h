/* SPDX-License-Identifier: Apache-2.0
 *
 * What the root's files share: engine.c (lanes and their waves, scores), admission.c (which sequence is
 * in which slot, from its admission to its end). Nobody else includes this.
 */
#ifndef CAKE_ENGINE_INTERNAL_H
#define CAKE_ENGINE_INTERNAL_H

#include "base/arena.h"
#include "engine/engine.h"
#include "engine/sampler.h"
#include "logits/logits.h"

typedef struct cake_engine_lane {
    cake_wave_msg msg;       /* what the lane's waves leave in */
    const cake_batch *batch; /* what the wave under way holds */
    float *body;             /* [max_tok, dim] the lane's body where a GPU has it; NULL: it is in the wave */
} cake_engine_lane;

struct cake_engine {
    const cake_model *model;
    const cake_config *config;
    const cake_kernels *embed;
    const cake_plan *plan;
    cake_schedule_shape shape;
    int n_thread, n_decode; /* threads for waves; for those that only generate */
    cake_sequence_io io;
    cake_prefix_tree *prefixes; /* NULL: nothing is shared */
    cake_request_queue queue;
    cake_schedule *schedule;
    cake_sequence **seqs;    /* [n_lane * lane_seqs] */
    cake_engine_lane *lanes; /* [n_lane] */
    int n_away;
    cake_sequence *lead; /* a request of several choices that have not all begun; NULL: there is none */
    int stem; /* the slot that holds lead's prompt for its choices; -1: choices are admitted one by one */
    bool stem_known; /* stem_score is filled */
    cake_err err;
    cake_arena arena;  /* the lanes' waves, and host buffers that follow */
    cake_arena away;   /* memory of the GPU that has the embedding: the lanes' bodies, and `there` */
    int32_t *there;    /* [max_tok] ids, in that memory */
    int32_t *ids;      /* [max_tok] */
    float *stem_score; /* [n_vocab] scores of the token behind the stem's prompt */
    cake_sampler *sampler;
    cake_logits *logits;
    bool *wanted;    /* [lane_seqs] for each scored row: all of its scores are needed, not only the best */
    cake_topk *best; /* [lane_seqs] the best scores of each of these rows */
    bool blamed;     /* it was said which rank gave numbers that are not finite */
    cake_engine_stats stats;
    cake_trace *trace; /* or NULL */
};

/* Adds a span that began at `begin` and ends now to the trace; returns its seconds. */
double cake_engine_trace(cake_engine *root, cake_span_kind kind, double begin, int rows);

/* Reads up to n more requests. */
void cake_engine_read(cake_engine *root, int n);
/* To be called when the first rows of a request's prompt leave, or when it is over before any did. */
void cake_engine_begin(cake_engine *root, cake_sequence *lead);
/* Admits sequences to free slots. While a request of several choices has not had all of them admitted, no
 * other one is. */
void cake_engine_admit(cake_engine *root);
/* A token was drawn: the sequence goes on with it, or ends. */
void cake_engine_token(cake_engine *root, int slot, const cake_sample_row *draw);
/* An answer is over; and so is its request if all of its choices are. */
void cake_engine_retire(cake_engine *root, int slot);
/* A prompt is scored, of a request that wants nothing else. */
void cake_engine_retire_prompt(cake_engine *root, int slot);
/* A sequence needs, even alone, more pages than the KV memory has: its request fails. */
void cake_engine_overflow(cake_engine *root, int slot);

#endif
