/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by engine.c (lanes, waves, scores), admission.c (sequences in slots, from admission to retirement),
 * pooling.c (embeddings), predict.c (multi-token prediction) and buffer_bytes.c only.
 */
#ifndef CAKE_ENGINE_INTERNAL_H
#define CAKE_ENGINE_INTERNAL_H

#include "base/arena.h"
#include "engine/engine.h"
#include "engine/mtp.h"
#include "engine/sampler.h"
#include "engine/speculation.h"
#include "logits/logits.h"

typedef struct cake_engine_lane {
    cake_wave_msg msg;       /* the lane's waves are sent in it */
    const cake_batch *batch; /* content of the wave in flight */
    float *body;             /* [max_row, dim] in GPU memory; NULL: the body is in the wave */
    double sent;             /* when; 0: it has rows of prompts, too */
} cake_engine_lane;

struct cake_engine {
    const cake_model *model;
    const cake_config *config;
    const cake_kernels *embed;
    const cake_plan *plan;
    cake_schedule_shape shape;
    int n_thread, n_decode; /* threads for waves; for waves without prompt rows */
    cake_sequence_io io;
    cake_prefix_tree *prefixes; /* NULL: no prefix cache */
    cake_request_queue queue;
    cake_schedule *schedule;
    cake_sequence **seqs;    /* [n_lane * lane_seqs] */
    cake_engine_lane *lanes; /* [n_lane] */
    int n_in_flight;         /* waves */
    cake_sequence *lead;     /* a request of several choices that have not all begun; NULL: there is none */
    int stem; /* the slot that holds lead's prompt for its choices; -1: choices are admitted one by one */
    bool stem_scored; /* stem_score is filled */
    cake_err err;
    cake_arena arena;        /* waves, ids, stem_score */
    cake_arena device_arena; /* memory of the GPU that has the embedding: the lanes' bodies, device_ids */
    int32_t *device_ids;     /* [max_row] in GPU memory */
    int32_t *ids;            /* [max_row] */
    int32_t *positions;      /* [max_row] rows of the embedding of positions */
    uint8_t *types;          /* [max_row] token types */
    float *stem_score;       /* [n_vocab] scores of the token that follows the stem's prompt */
    cake_sampler *sampler;
    cake_logits *logits;
    cake_speculation *speculation;    /* NULL: nothing is drafted */
    cake_mtp *mtp;                    /* NULL: the model drafts nothing itself */
    int32_t *predict_row, *predicted; /* [max_score] rows after which it predicts a token, and those tokens */
    cake_row *predict_from;           /* [max_score] the rows of the wave that these follow */
    int32_t *drafting;                /* [lane_seqs] slots of a wave that may have drafts */
    int *round;                       /* [max_score] how many rows of the same answer come before */
    int max_score;                    /* rows whose scores, or hidden states, are computed at a time */
    bool best_allowed;                /* the head finds the best of allowed scores */
    bool *need_all;                   /* [max_score] all scores of this row are needed, not only the best */
    cake_topk *best;                  /* [max_score] the best scores of each row */
    cake_pooling_row *pool_row;       /* [max_score, the model's number of poolings] */
    bool *row_taken;                  /* [max_score] the row is pooled for the first time */
    bool nonfinite_warned;            /* the rank with the first value that is not finite was named */
    cake_engine_stats stats;
    cake_trace *trace; /* or NULL */
};

/* Reads up to n more requests. */
void cake_engine_read(cake_engine *engine, int n);
/* Counts a request as begun, once: when the first rows of its prompt are sent, or when it ends before. */
void cake_engine_begin(cake_engine *engine, cake_sequence *lead);
/* Admits sequences to free slots. All choices of a request are admitted before the next request. */
void cake_engine_admit(cake_engine *engine);
/* Appends a sampled token to its sequence, which may end with it. */
void cake_engine_token(cake_engine *engine, int slot, const cake_sample_row *draw);
/* Fails a request whose constraint lets no token come next. */
void cake_engine_stuck(cake_sequence *sequence, const cake_sample_row *draw);
/* Ends an answer, and its request if that was the last of its choices. */
void cake_engine_retire(cake_engine *engine, int slot);
/* Ends a request that wanted only its prompt scored, or a part of it. */
void cake_engine_retire_prompt(cake_engine *engine, int slot);
/* Fails a request whose sequence needs more pages than exist. */
void cake_engine_overflow(cake_engine *engine, int slot);

/* pooling.c: the flags of a text's slot, which say what rows are pooled; and whether a slot's rows are. */
int cake_engine_pool_flags(const cake_engine *engine);
bool cake_engine_pools(const cake_engine *engine, int slot);
/* Pools rows [first, first + n) of those that a batch wants. */
void cake_engine_pool_rows(cake_engine *engine, int n_thread, const cake_wave_msg *msg,
                           const cake_batch *batch, int first, int n);
typedef enum cake_pooled {
    CAKE_POOLED_PART,     /* rows of the text are missing */
    CAKE_POOLED_WHOLE,    /* it has its embedding, or its request has failed before */
    CAKE_POOLED_NONFINITE /* its embedding is not finite */
} cake_pooled;
/* What became of the text of row i of those, which ends with it. */
cake_pooled cake_engine_pooled(const cake_engine *engine, int n_thread, int i, cake_sequence *sequence,
                               const cake_row *row);

/* predict.c: runs the layer of multi-token prediction over a wave whose tokens have been sampled, and offers
 * what it predicts as drafts. */
void cake_engine_predict(cake_engine *engine, int n_thread, cake_wave *wave);

/* Bytes of the host's arena, without the sampler; of one lane's wave; of one lane's body on a GPU. */
size_t cake_engine_host_bytes(const cake_config *config, const cake_schedule_shape *shape);
size_t cake_engine_wave_bytes(const cake_config *config, const cake_schedule_shape *shape);
size_t cake_engine_body_bytes(const cake_config *config, const cake_schedule_shape *shape);

#endif
