/* SPDX-License-Identifier: Apache-2.0
 *
 * In: sequences, waves that are back. Out: waves, finished sequences. The pipeline calls.
 * Invariant: slot s of the schedule is sequence seqs[s], from admission to retirement.
 */
#include "run/root.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "embed/embed.h"
#include "logits/logits.h"

typedef struct root_lane {
    cake_parcel parcel;      /* what the lane's waves leave in */
    const cake_batch *batch; /* of the wave under way */
} root_lane;

struct cake_root {
    const cake_model *model;
    const cake_config *config;
    const cake_kernels *kernels;
    cake_schedule_shape shape;
    int n_thread;
    cake_conductor conductor;
    cake_schedule *schedule;
    cake_sequence **seqs; /* [n_lane * lane_seqs] */
    root_lane *lanes;     /* [n_lane] */
    int n_away;
    bool exhausted; /* the conductor has no more */
    cake_err err;
    cake_arena arena;    /* the lanes' waves and what follows */
    int32_t *ids;        /* [max_tok] */
    cake_scored *scored; /* [1 + 20] */
    void *sample_scratch;
    cake_logits *logits;
    cake_root_stats stats;
};

enum { MAX_TOP = 20 };

static size_t wave_bytes(const cake_config *config, const cake_schedule_shape *shape)
{
    return cake_arena_round(cake_wave_bytes(shape->max_tok, cake_schedule_changes(shape), config->dim));
}

static size_t own_bytes(const cake_config *config, const cake_schedule_shape *shape)
{
    return (size_t)shape->n_lane * wave_bytes(config, shape) +
           cake_arena_round((size_t)shape->max_tok * sizeof(int32_t)) +
           cake_arena_round((1 + MAX_TOP) * sizeof(cake_scored)) +
           cake_arena_round(cake_sample_scratch(config->n_vocab));
}

size_t cake_root_bytes(const cake_config *config, const cake_schedule_shape *shape)
{
    return own_bytes(config, shape) + cake_logits_bytes(config, shape->lane_seqs);
}

cake_err cake_root_open(const cake_model *model, const cake_kernels *kernels,
                        const cake_schedule_shape *shape, int n_thread, const cake_conductor *conductor,
                        cake_root **out)
{
    const cake_config *config = cake_model_config(model);
    cake_root *r = cake_alloc(1, sizeof *r);
    *r = (cake_root){.model = model,
                     .config = config,
                     .kernels = kernels,
                     .shape = *shape,
                     .n_thread = n_thread,
                     .conductor = *conductor};
    cake_err err = cake_arena_open(&r->arena, "waves", own_bytes(config, shape));
    if (!err)
        err = cake_logits_open(model, kernels, shape->lane_seqs, n_thread, &r->logits);
    if (err) {
        cake_root_close(r);
        return err;
    }
    r->schedule = cake_schedule_open(shape);
    r->seqs = cake_alloc((size_t)shape->n_lane * (size_t)shape->lane_seqs, sizeof *r->seqs);
    r->lanes = cake_alloc((size_t)shape->n_lane, sizeof *r->lanes);
    for (int i = 0; i < shape->n_lane; i++)
        r->lanes[i].parcel.wave = cake_arena_take(&r->arena, wave_bytes(config, shape));
    r->ids = cake_arena_take(&r->arena, (size_t)shape->max_tok * sizeof *r->ids);
    r->scored = cake_arena_take(&r->arena, (1 + MAX_TOP) * sizeof *r->scored);
    r->sample_scratch = cake_arena_take(&r->arena, cake_sample_scratch(config->n_vocab));
    *out = r;
    return CAKE_OK;
}

void cake_root_close(cake_root *r)
{
    if (!r)
        return;
    for (int i = 0; r->seqs && i < r->shape.n_lane * r->shape.lane_seqs; i++)
        cake_sequence_close(r->seqs[i]);
    cake_logits_close(r->logits);
    cake_schedule_close(r->schedule);
    cake_arena_close(&r->arena);
    free(r->seqs);
    free(r->lanes);
    free(r);
}

cake_err cake_root_error(const cake_root *r)
{
    return r->err;
}

bool cake_root_done(const cake_root *r)
{
    return !r->n_away && (r->err || (r->exhausted && !cake_schedule_active(r->schedule)));
}

cake_root_stats cake_root_statistics(const cake_root *r)
{
    cake_root_stats stats = r->stats;
    stats.evictions = cake_schedule_evictions(r->schedule);
    return stats;
}

/* Hands a finished sequence back; the first error stops all further work. */
static void finish(cake_root *r, cake_sequence *sequence)
{
    if (r->err)
        cake_sequence_close(sequence);
    else
        r->err = r->conductor.done(r->conductor.self, sequence);
}

static void retire(cake_root *r, int slot)
{
    cake_sequence *sequence = r->seqs[slot];
    cake_schedule_retire(r->schedule, slot);
    r->seqs[slot] = NULL;
    finish(r, sequence);
}

/* Requests that failed before they began go straight back. */
static void admit(cake_root *r)
{
    while (!r->exhausted && !r->err && cake_schedule_room(r->schedule)) {
        cake_sequence *sequence;
        cake_err err = r->conductor.next(r->conductor.self, &sequence);
        if (err == CAKE_END) {
            r->exhausted = true;
        } else if (err) {
            r->err = err;
        } else if (sequence->request.err) {
            finish(r, sequence);
        } else {
            sequence->admitted = cake_clock_now();
            r->seqs[cake_schedule_admit(r->schedule, sequence->n_prompt, 0)] = sequence;
        }
    }
}

static void overflow(cake_root *r, int slot)
{
    cake_sequence *s = r->seqs[slot];
    s->request.err = cake_fault_set(
        &s->request.fault, NULL,
        "a sequence of %zu tokens alone is more than the KV memory holds (%d pages of %d tokens); "
        "try again with more --kv-memory or more ranks",
        s->ids.len, r->shape.n_page[0], CAKE_PAGE);
    s->request.fault.status = 500;
    retire(r, slot);
}

/* Writes a batch into the lane's wave and starts it on its way. */
static void depart(cake_root *r, int lane, const cake_batch *batch, cake_link *first)
{
    root_lane *l = &r->lanes[lane];
    cake_wave *wave = l->parcel.wave;
    *wave = (cake_wave){.kind = CAKE_WAVE_ROWS,
                        .lane = lane,
                        .n_tok = batch->n_tok,
                        .n_change = batch->n_change,
                        .dim = r->config->dim};
    memcpy(cake_wave_rows(wave), batch->rows, (size_t)batch->n_tok * sizeof *batch->rows);
    memcpy(cake_wave_changes(wave), batch->changes, (size_t)batch->n_change * sizeof *batch->changes);
    for (int i = 0; i < batch->n_tok; i++)
        r->ids[i] = r->seqs[batch->rows[i].slot]->ids.id[batch->rows[i].pos];
    double start = cake_clock_now();
    cake_embed_fill(r->model, r->kernels, r->n_thread, r->ids, wave);
    r->stats.embed_s += cake_clock_now() - start;
    r->stats.waves++;
    r->stats.rows += batch->n_tok;
    l->batch = batch;
    l->parcel.busy = true;
    r->n_away++;
    cake_link_send(first, &l->parcel);
}

bool cake_root_send(cake_root *r, cake_link *first)
{
    bool sent = false;
    admit(r);
    for (int lane = 0; lane < r->shape.n_lane && !r->err; lane++) {
        /* a lane that came round by other buffers may still be leaving its own */
        if (cake_schedule_away(r->schedule, lane) || r->lanes[lane].parcel.busy)
            continue;
        const cake_batch *batch = cake_schedule_fill(r->schedule, lane);
        while (batch->n_overflow) {
            for (int i = 0; i < batch->n_overflow; i++)
                overflow(r, batch->overflow[i]);
            batch = cake_schedule_fill(r->schedule, lane);
        }
        if (batch->n_tok) {
            depart(r, lane, batch, first);
            sent = true;
        }
    }
    return sent;
}

/* The chosen token's logprob and the best alternatives', of the model's own distribution. */
static void score_token(cake_root *r, const float *score, int32_t id, int n_top)
{
    int n_vocab = r->config->n_vocab;
    int32_t best[MAX_TOP];
    double total = cake_logits_total(score, n_vocab);
    cake_logits_top(score, n_vocab, n_top, best);
    r->scored[0] = (cake_scored){id, (float)((double)score[id] - total)};
    for (int i = 0; i < n_top; i++)
        r->scored[1 + i] = (cake_scored){best[i], (float)((double)score[best[i]] - total)};
}

/* Samples the next token of a sequence from its scores [n_vocab]. */
static void continue_sequence(cake_root *r, int slot, const float *score)
{
    cake_sequence *s = r->seqs[slot];
    if (!cake_logits_finite(score, r->config->n_vocab)) {
        s->request.err = cake_fault_set(
            &s->request.fault, NULL, "the model's scores at position %zu are not finite numbers", s->ids.len);
        s->request.fault.status = 500;
        retire(r, slot);
        return;
    }
    s->key.pos = (uint32_t)s->ids.len;
    int32_t id = cake_sample(score, r->config->n_vocab, &s->request.params, &s->key, r->sample_scratch);
    if (s->n_top >= 0)
        score_token(r, score, id, s->n_top);
    bool finished = cake_sequence_push(s, id, r->scored, r->config->eos, r->config->n_eos);
    r->conductor.token(r->conductor.self, s);
    if (finished)
        retire(r, slot);
    else
        cake_schedule_token(r->schedule, slot);
}

/* Scores and samples in blocks: a prompt whose rows are all wanted has more of them than a lane has sequences. */
static void continue_all(cake_root *r, cake_wave *wave, const cake_batch *batch)
{
    for (int first = 0, n; first < batch->n_score; first += n) {
        n = batch->n_score - first < r->shape.lane_seqs ? batch->n_score - first : r->shape.lane_seqs;
        double start = cake_clock_now();
        const float *score = cake_logits_forward(r->logits, wave, batch->score + first, n);
        double scored = cake_clock_now();
        for (int i = 0; i < n; i++)
            continue_sequence(r, batch->slot[first + i], score + (size_t)i * (size_t)r->config->n_vocab);
        r->stats.head_s += scored - start;
        r->stats.sample_s += cake_clock_now() - scored;
    }
}

void cake_root_receive(cake_root *r, cake_parcel *parcel)
{
    int lane = parcel->wave->lane;
    CAKE_ASSERT(lane >= 0 && lane < r->shape.n_lane && cake_schedule_away(r->schedule, lane));
    cake_schedule_back(r->schedule, lane);
    r->n_away--;
    continue_all(r, parcel->wave, r->lanes[lane].batch);
    cake_parcel_release(parcel);
}
