/* SPDX-License-Identifier: Apache-2.0
 *
 * A model that counts, so that the right answer to every prompt is known: the token after id is
 * counting_next(id). Embedding and head are one random matrix; counting_forward takes the place of the layers
 * and replaces each row, which is the embedding of an id, by that of the next one. Included by the tests of
 * the engine and of the dispatcher.
 */
#ifndef CAKE_TESTS_COUNTING_H
#define CAKE_TESTS_COUNTING_H

#include <math.h>
#include <string.h>

#include "embed/embed.h"
#include "engine/engine.h"
#include "tests/suite.h"

enum {
    COUNTING_CYCLE = 40,  /* ids below it count in a circle, those above it up to the end token */
    COUNTING_NAN = 50,    /* the layer turns its row into NaN */
    COUNTING_SCORES = 52, /* its row is NaN, though no layer is marked: as if the head had made it so */
    COUNTING_EOS = 63,
    COUNTING_VOCAB = 64,
    COUNTING_DIM = 64
};

static cake_model *counting_model;
static float counting_row[COUNTING_VOCAB][COUNTING_DIM]; /* the embedding */

static inline int32_t counting_next(int32_t id)
{
    return (id + 1) % (id < COUNTING_CYCLE ? COUNTING_CYCLE : COUNTING_VOCAB);
}

/* Opens counting_model; false: it could not be. */
static inline bool counting_open(void)
{
    static const char config[] =
        "{\"model_type\": \"llama\", \"hidden_size\": 64, \"num_hidden_layers\": 1, \"num_attention_heads\": "
        "2, \"num_key_value_heads\": 1, \"intermediate_size\": 64, \"vocab_size\": 64, "
        "\"max_position_embeddings\": 4096, \"rms_norm_eps\": 1e-6, \"eos_token_id\": 63, \"dtype\": "
        "\"float32\", \"tie_word_embeddings\": true}";
    static _Alignas(64) char bytes[1 << 16];
    cake_wave *wave = (cake_wave *)(void *)bytes;
    cake_model_options options = {.config = config, .dummy = true, .dummy_seed = 7};
    cake_weight_set ends = {.embed = true, .head = true};
    if (cake_model_open("counting", &options, &counting_model) ||
        cake_model_load(counting_model, &ends, &cake_kernels_ref, &(cake_loading){.threads = 1}))
        return false;
    int32_t ids[COUNTING_VOCAB];
    for (int i = 0; i < COUNTING_VOCAB; i++)
        ids[i] = i;
    *wave = (cake_wave){.n_row = COUNTING_VOCAB, .dim = COUNTING_DIM};
    CAKE_ASSERT(cake_wave_bytes(wave->n_row, 0, wave->dim) <= sizeof bytes);
    cake_embed_fill(counting_model, &cake_kernels_ref, 1, ids, NULL, NULL, wave);
    memcpy(counting_row, cake_wave_body(wave), sizeof counting_row);
    return true;
}

/* The id whose embedding a row is; -1: none has it. */
static inline int32_t counting_id(const float *row)
{
    for (int32_t id = 0; id < COUNTING_VOCAB; id++)
        if (!memcmp(row, counting_row[id], sizeof counting_row[id]))
            return id;
    return -1;
}

/* Attention spreads what is not finite to the later rows of a sequence, which the next layer marks. */
static inline void counting_forward(cake_wave *wave)
{
    cake_row *rows = cake_wave_rows(wave);
    int32_t id = -1;
    for (int i = 0; i < wave->n_row; i++) {
        float *body = cake_wave_body(wave) + (size_t)i * COUNTING_DIM;
        bool follows = i && rows[i].slot == rows[i - 1].slot && rows[i].pos == rows[i - 1].pos + 1;
        int32_t before = id;
        id = counting_id(body);
        CU_ASSERT_FATAL(id >= 0 && (!follows || id == counting_next(before)));
        memcpy(body, counting_row[counting_next(id)], sizeof counting_row[0]);
        if (id == COUNTING_NAN)
            rows[i].nonfinite = CAKE_ROW_NONFINITE(0);
        else if (follows && rows[i - 1].nonfinite)
            rows[i].nonfinite = CAKE_ROW_NONFINITE(1);
        if (rows[i].nonfinite || id == COUNTING_SCORES)
            body[0] = NAN;
    }
}

/* Lanes of lane_seqs sequences, and n_page pages. */
static inline cake_schedule_shape counting_shape(int n_lane, int lane_seqs, int n_page)
{
    return (cake_schedule_shape){.n_lane = n_lane,
                                 .lane_seqs = lane_seqs,
                                 .chunk = CAKE_PAGE,
                                 .max_row = CAKE_PAGE + lane_seqs,
                                 .n_kv_group = 1,
                                 .n_page = {n_page}};
}

static inline cake_engine *counting_engine(const cake_schedule_shape *shape, const cake_sequence_io *io)
{
    static cake_hop hop = {.count = 1};
    static const cake_plan plan = {.hop = &hop, .n_hop = 1, .n_rank = 1};
    cake_engine *engine = NULL;
    cake_engine_setup setup = {.model = counting_model,
                               .embed = &cake_kernels_ref,
                               .head = &cake_kernels_ref,
                               .plan = &plan,
                               .shape = shape,
                               .n_thread = 1};
    CU_ASSERT_EQUAL_FATAL(cake_engine_open(&setup, io, &engine), CAKE_OK);
    return engine;
}

/* Greedy; its prompt comes with counting_sequence. */
static inline cake_request counting_request(int64_t order, int max_tokens)
{
    cake_request request = {.index = order, .order = order, .params = cake_params_base()};
    request.params.temperature = 0;
    request.params.max_tokens = max_tokens;
    return request;
}

/* Takes the request over. Its prompt: n_prompt ids from `first` on, each the one after the id before. */
static inline cake_sequence *counting_sequence(cake_request *request, int32_t first, int n_prompt)
{
    cake_ids ids = {0};
    for (int i = 0; i < n_prompt; i++, first = counting_next(first))
        cake_ids_add(&ids, first);
    return cake_sequence_open(request, &ids, cake_model_config(counting_model)->context, 0, NULL);
}

/* Whether the answer has n tokens that count on from the prompt. */
static inline bool counting_is_right(const cake_sequence *s, int n_generated)
{
    bool right = s && !s->lead->request.err && cake_sequence_generated(s) == n_generated;
    for (size_t i = right ? (size_t)s->n_prompt : 0; right && i < s->ids.len; i++)
        right = s->ids.id[i] == counting_next(s->ids.id[i - 1]);
    return right;
}

/* Where the sequences of a test come from and go to. Zeros but for fail_read and fail_done: no requests. */
enum { COUNTING_REQUESTS = 400 };
typedef struct counting_io {
    cake_sequence *unread[COUNTING_REQUESTS]; /* [n] owned; NULL once it was read */
    int n, n_read;
    int fail_read;   /* reading this request is an error; -1: none */
    int fail_done;   /* so is handing back the request that ends as this one; -1: none */
    bool slow, wait; /* every other time there is nothing to read yet */
    cake_sequence *done[COUNTING_REQUESTS]; /* by order; owned */
    int64_t ended[COUNTING_REQUESTS];       /* [n_done] the orders of those that are done, as they ended */
    int n_done, n_token;
} counting_io;

static inline cake_err counting_io_next(void *self, cake_sequence **out)
{
    counting_io *io = self;
    *out = NULL;
    io->wait = io->slow && !io->wait;
    if (io->wait)
        return CAKE_OK;
    if (io->n_read == io->fail_read)
        return CAKE_ERR_FATAL;
    if (io->n_read == io->n)
        return CAKE_END;
    *out = io->unread[io->n_read];
    io->unread[io->n_read++] = NULL;
    return CAKE_OK;
}

static inline void counting_io_token(void *self, cake_sequence *s, double waited)
{
    CU_ASSERT(waited >= 0 && cake_sequence_generated(s) > 0);
    ((counting_io *)self)->n_token++;
}

static inline cake_err counting_io_done(void *self, cake_sequence *lead)
{
    counting_io *io = self;
    int64_t order = lead->request.order;
    CU_ASSERT_FATAL(order >= 0 && order < io->n && !io->done[order]);
    io->done[order] = lead;
    io->ended[io->n_done++] = order;
    return io->n_done - 1 == io->fail_done ? CAKE_ERR_FATAL : CAKE_OK;
}

static inline cake_sequence_io counting_io_open(counting_io *io)
{
    return (cake_sequence_io){
        .self = io, .next = counting_io_next, .token = counting_io_token, .done = counting_io_done};
}

static inline void counting_io_close(counting_io *io)
{
    for (int i = 0; i < io->n; i++) {
        cake_sequence_close(io->unread[i]);
        cake_sequence_close(io->done[i]);
    }
}

/* Adds a request with parameters of its own, which the caller may change. */
static inline cake_sequence *counting_ask_for(counting_io *io, cake_request *request, int32_t first,
                                              int n_prompt)
{
    CU_ASSERT_FATAL(io->n < COUNTING_REQUESTS);
    request->index = request->order = io->n;
    return io->unread[io->n++] = counting_sequence(request, first, n_prompt);
}

static inline cake_sequence *counting_ask(counting_io *io, int32_t first, int n_prompt, int max_tokens)
{
    cake_request request = counting_request(0, max_tokens);
    return counting_ask_for(io, &request, first, n_prompt);
}

#endif
