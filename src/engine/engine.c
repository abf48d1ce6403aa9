/* SPDX-License-Identifier: Apache-2.0
 *
 * In: sequences, waves that have passed all layers. Out: waves, finished sequences.
 * Invariant: slot s of the schedule is sequence seqs[s], from admission to retirement.
 */
#include "engine/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "embed/embed.h"
#include "engine/internal.h"

static size_t wave_bytes(const cake_config *config, const cake_schedule_shape *shape)
{
    return cake_arena_round(cake_wave_bytes(shape->max_tok, cake_schedule_changes(shape), config->dim));
}

static size_t host_bytes(const cake_config *config, const cake_schedule_shape *shape)
{
    return (size_t)shape->n_lane * wave_bytes(config, shape) +
           cake_arena_round((size_t)shape->max_tok * sizeof(int32_t)) +
           cake_arena_round((size_t)config->n_vocab * sizeof(float));
}

size_t cake_engine_bytes(const cake_config *config, const cake_schedule_shape *shape, int n_thread)
{
    return host_bytes(config, shape) + cake_sampler_bytes(config->n_vocab, shape->lane_seqs, n_thread);
}

static size_t body_bytes(const cake_config *config, const cake_schedule_shape *shape)
{
    return cake_arena_round((size_t)shape->max_tok * (size_t)config->dim * sizeof(float));
}

size_t cake_engine_device_bytes(const cake_config *config, const cake_schedule_shape *shape)
{
    return (size_t)shape->n_lane * body_bytes(config, shape) +
           cake_arena_round((size_t)shape->max_tok * sizeof(int32_t));
}

static void alloc_lanes(cake_engine *r)
{
    for (int i = 0; i < r->shape.n_lane; i++) {
        r->lanes[i].msg.wave = cake_arena_take(&r->arena, wave_bytes(r->config, &r->shape));
        if (r->embed->memory)
            r->lanes[i].body = cake_arena_take(&r->device_arena, body_bytes(r->config, &r->shape));
    }
    if (r->embed->memory)
        r->device_ids = cake_arena_take(&r->device_arena, (size_t)r->shape.max_tok * sizeof *r->device_ids);
}

cake_err cake_engine_open(const cake_model *model, const cake_kernels *embed, const cake_kernels *head,
                          const cake_plan *plan, const cake_schedule_shape *shape, int n_thread, int n_decode,
                          const cake_sequence_io *io, cake_engine **out)
{
    const cake_config *config = cake_model_config(model);
    cake_engine *r = cake_alloc(1, sizeof *r);
    *r = (cake_engine){.model = model,
                       .config = config,
                       .embed = embed,
                       .plan = plan,
                       .stem = -1,
                       .shape = *shape,
                       .n_thread = n_thread,
                       .n_decode = n_decode ? n_decode : n_thread,
                       .io = *io};
    cake_err err = cake_arena_open(&r->arena, "waves", host_bytes(config, shape));
    if (!err && embed->memory)
        err = cake_memory_open(embed->memory, &r->device_arena, "waves",
                               cake_engine_device_bytes(config, shape));
    if (!err)
        err = cake_logits_open(model, head, shape->lane_seqs, n_thread, &r->logits);
    if (!err)
        err = cake_sampler_open(config->n_vocab, shape->lane_seqs, n_thread, &r->sampler);
    if (err) {
        cake_engine_close(r);
        return err;
    }
    r->prefixes = shape->share ? cake_prefix_tree_open() : NULL;
    r->schedule = cake_schedule_open(shape, r->prefixes);
    cake_request_queue_open(&r->io, config, r->prefixes, &r->queue);
    r->seqs = cake_alloc((size_t)shape->n_lane * (size_t)shape->lane_seqs, sizeof *r->seqs);
    r->lanes = cake_alloc((size_t)shape->n_lane, sizeof *r->lanes);
    r->need_all = cake_alloc((size_t)shape->lane_seqs, sizeof *r->need_all);
    r->best = cake_alloc((size_t)shape->lane_seqs, sizeof *r->best);
    alloc_lanes(r);
    r->ids = cake_arena_take(&r->arena, (size_t)shape->max_tok * sizeof *r->ids);
    r->stem_score = cake_arena_take(&r->arena, (size_t)config->n_vocab * sizeof *r->stem_score);
    *out = r;
    return CAKE_OK;
}

/* Closes a request and all of its choices that are in slots. */
static void close_lead(cake_engine *r, cake_sequence *lead)
{
    for (int i = 0; lead && i < r->shape.n_lane * r->shape.lane_seqs; i++)
        if (r->seqs[i] && r->seqs[i]->lead == lead)
            r->seqs[i] = NULL;
    cake_sequence_close(lead);
}

void cake_engine_close(cake_engine *r)
{
    if (!r)
        return;
    int n_slot = r->seqs ? r->shape.n_lane * r->shape.lane_seqs : 0;
    close_lead(r, r->lead);
    for (int i = 0; i < n_slot; i++)
        if (r->seqs[i])
            close_lead(r, r->seqs[i]->lead);
    cake_sampler_close(r->sampler);
    cake_logits_close(r->logits);
    cake_request_queue_close(&r->queue);
    cake_schedule_close(r->schedule);
    cake_prefix_tree_close(r->prefixes);
    cake_arena_close(&r->arena);
    cake_memory_close(r->embed->memory, &r->device_arena);
    free(r->seqs);
    free(r->lanes);
    free(r->need_all);
    free(r->best);
    free(r);
}

void cake_engine_set_trace(cake_engine *r, cake_trace *trace)
{
    r->trace = trace;
}

void cake_engine_stop(cake_engine *r, cake_err err)
{
    r->err = r->err ? r->err : err;
}

cake_replica_progress cake_engine_progress(const cake_engine *r)
{
    return (cake_replica_progress){
        .begun = r->stats.begun, .begun_tok = r->stats.begun_tok, .rows = r->stats.rows};
}

double cake_engine_trace(cake_engine *r, cake_span_kind kind, double begin, int rows)
{
    double now = cake_clock_now();
    cake_trace_add(r->trace, (cake_span){.begin = begin, .kind = (int32_t)kind, .rows = rows}, now);
    return now - begin;
}

int cake_engine_in_flight(const cake_engine *r)
{
    return r->n_in_flight;
}

int cake_engine_active(const cake_engine *r)
{
    return cake_schedule_active(r->schedule);
}

static bool is_finished(const cake_engine *r)
{
    return r->queue.closed && !r->queue.n && !r->lead && !cake_schedule_active(r->schedule);
}

bool cake_engine_done(const cake_engine *r)
{
    return !r->n_in_flight && (r->err || is_finished(r));
}

cake_err cake_engine_error(const cake_engine *r)
{
    return r->err == CAKE_STOPPED && is_finished(r) ? CAKE_OK : r->err;
}

cake_engine_stats cake_engine_statistics(const cake_engine *r)
{
    cake_engine_stats stats = r->stats;
    stats.schedule = cake_schedule_statistics(r->schedule);
    return stats;
}

static int threads_of(const cake_engine *r, cake_wave *wave)
{
    return cake_wave_generates(wave) ? r->n_decode : r->n_thread;
}

/* Writes a batch into the lane's wave, embeds its tokens and sends it. */
static void send_batch(cake_engine *r, int lane, const cake_batch *batch, cake_link *first)
{
    cake_engine_lane *l = &r->lanes[lane];
    cake_wave *wave = l->msg.wave;
    *wave = (cake_wave){.kind = CAKE_WAVE_ROWS,
                        .lane = lane,
                        .n_tok = batch->n_tok,
                        .n_change = batch->n_change,
                        .dim = r->config->dim};
    memcpy(cake_wave_rows(wave), batch->rows, (size_t)batch->n_tok * sizeof *batch->rows);
    memcpy(cake_wave_changes(wave), batch->changes, (size_t)batch->n_change * sizeof *batch->changes);
    for (int i = 0; i < batch->n_tok; i++) {
        cake_sequence *s = r->seqs[batch->rows[i].slot];
        r->ids[i] = s->ids.id[batch->rows[i].pos];
        cake_engine_begin(r, s->lead);
    }
    double start = cake_clock_now();
    l->msg.body = l->body;
    if (l->body)
        cake_embed_fill_device(r->model, r->embed, r->ids, wave->n_tok, r->device_ids, l->body);
    else
        cake_embed_fill(r->model, r->embed, threads_of(r, wave), r->ids, wave);
    r->stats.embed_s += cake_engine_trace(r, CAKE_SPAN_EMBED, start, batch->n_tok);
    r->stats.rows += batch->n_tok;
    l->batch = batch;
    l->msg.in_flight = true;
    r->n_in_flight++;
    start = cake_clock_now();
    cake_link_send(first, &l->msg);
    cake_span sent = {
        .begin = start, .kind = CAKE_SPAN_SEND, .number = (int32_t)r->stats.waves++, .lane = lane};
    cake_trace_add(r->trace, sent, cake_clock_now());
}

bool cake_engine_send(cake_engine *r, cake_link *first)
{
    enum { FIRST = 16, STEP = 4 }; /* requests to read ahead: before the first wave, after each further one */
    bool sent = false;
    if (!r->stats.waves && !r->err)
        cake_engine_read(r, FIRST - r->queue.n);
    cake_engine_admit(r);
    for (int lane = 0; lane < r->shape.n_lane && !r->err; lane++) {
        /* A wave comes back in a message of another edge; the lane's own one may still be in flight then. */
        if (cake_schedule_in_flight(r->schedule, lane) || r->lanes[lane].msg.in_flight)
            continue;
        const cake_batch *batch = cake_schedule_next_batch(r->schedule, lane);
        while (batch->n_overflow) {
            for (int i = 0; i < batch->n_overflow; i++)
                cake_engine_overflow(r, batch->overflow[i]);
            batch = cake_schedule_next_batch(r->schedule, lane);
        }
        if (batch->n_tok) {
            send_batch(r, lane, batch, first);
            sent = true;
        }
    }
    if (sent && !r->err) /* while the other ranks compute */
        cake_engine_read(r, STEP);
    return sent;
}

/* Warns once which rank has the layer. The record does not name it: results must not depend on the plan. */
static void warn_nonfinite(cake_engine *r, int layer, const char *where)
{
    int rank = 0;
    for (int i = 0; i < r->plan->n_hop; i++)
        if (layer >= r->plan->hop[i].first && layer < r->plan->hop[i].first + r->plan->hop[i].count)
            rank = r->plan->hop[i].rank;
    if (!r->nonfinite_warned)
        cake_log(CAKE_WARN, "engine", "values that are not finite: %s, on rank %d, gave the first", where,
                 r->plan->first + rank);
    r->nonfinite_warned = true;
}

/* Fails a request with a value that is not finite, and names the layer that gave the first one. If all rows
 * of a prompt are scored, the rows before this one were finite and only this row's mark counts: the mark of
 * the sequence may stem from later rows of the same wave. */
static void fail_nonfinite(cake_engine *r, int slot, const cake_row *row)
{
    const cake_sequence *s = r->seqs[slot];
    cake_request *request = &s->lead->request;
    char where[64];
    int nonfinite = row->pos + 1 < s->n_prompt ? row->nonfinite : s->lead->nonfinite;
    int layer = nonfinite ? nonfinite - CAKE_ROW_NONFINITE(0) : -1;
    if (layer >= 0)
        snprintf(where, sizeof where, "layer %d", layer);
    else
        snprintf(where, sizeof where, "%s", nonfinite ? "the embedding" : "the final norm or the head");
    request->err = cake_fault_set(
        &request->fault, NULL,
        "the model's scores after position %d are not finite numbers: %s gave the first", row->pos, where);
    request->fault.status = 500;
    warn_nonfinite(r, layer, where);
}

/* Why a row is scored: for the logprob of a prompt token, for the first token after a stem's prompt, for the
 * next token, or only to check that the scores are finite. */
static cake_sample_row purpose_of_row(const cake_engine *r, int slot, const cake_row *row)
{
    cake_sequence *s = r->seqs[slot];
    cake_sample_row out = {.sequence = s, .what = CAKE_SAMPLE_CHECK};
    if (!s || s->lead->request.err)
        return out; /* an earlier block of rows has failed the request */
    if (row->pos + 1 < s->n_prompt) {
        out.what = CAKE_SAMPLE_SCORE;
        out.id = s->ids.id[row->pos + 1];
    } else if (slot != r->stem && s->max_len > s->n_prompt) {
        out.what = CAKE_SAMPLE_SAMPLE;
    }
    return out;
}

static void apply_sample(cake_engine *r, int slot, const cake_row *row, const cake_sample_row *sampled)
{
    cake_sequence *s = r->seqs[slot];
    if (!s) /* an earlier row of the wave has failed the request */
        return;
    if (!s->lead->request.err && !sampled->finite)
        fail_nonfinite(r, slot, row);
    if (s->lead->request.err) { /* one choice has failed, so the others are of no use */
        if (slot != r->stem)
            cake_engine_retire(r, slot);
    } else if (sampled->what == CAKE_SAMPLE_SCORE) {
        cake_sequence_score_prompt(s, row->pos + 1, sampled->scored);
    } else if (slot == r->stem) {
        memcpy(r->stem_score, sampled->score, (size_t)r->config->n_vocab * sizeof *sampled->score);
        r->stem_scored = true;
    } else if (sampled->what == CAKE_SAMPLE_CHECK) {
        cake_engine_retire_prompt(r, slot);
    } else {
        cake_engine_token(r, slot, sampled);
    }
}

/* A row that is not finite spoils other rows of its sequence from the next attention on. So the cause is the
 * earliest layer that any row is marked with. */
static void record_nonfinite(cake_engine *r, cake_wave *wave)
{
    const cake_row *rows = cake_wave_rows(wave);
    for (int i = 0; i < wave->n_tok; i++) {
        cake_sequence *s = r->seqs[rows[i].slot];
        if (rows[i].nonfinite && (!s->lead->nonfinite || rows[i].nonfinite < s->lead->nonfinite))
            s->lead->nonfinite = rows[i].nonfinite;
    }
}

/* Prepares the sampler's rows for scored rows [first, first + n): their purpose and their scores, or only the
 * best scores where these are enough. */
static void score_rows(cake_engine *r, const cake_wave_msg *msg, const cake_batch *batch, int first, int n)
{
    cake_wave *wave = msg->wave;
    const int32_t *row = batch->score + first;
    cake_sample_row *rows = cake_sampler_rows(r->sampler);
    for (int i = 0; i < n; i++) {
        rows[i] = purpose_of_row(r, batch->slot[first + i], &cake_wave_rows(wave)[row[i]]);
        int needs = cake_sample_row_topk(&rows[i], r->config->n_vocab);
        r->need_all[i] = !needs || batch->slot[first + i] == r->stem;
        cake_topk_clear(&r->best[i], needs ? needs : 1);
    }
    double start = cake_clock_now();
    float *scores =
        cake_logits_forward(r->logits, threads_of(r, wave), wave, msg->body, row, n, r->need_all, r->best);
    if (!scores)
        cake_comm_abort();
    for (int i = 0; i < n; i++) {
        rows[i].finite = rows[i].sequence && !r->best[i].nonfinite;
        rows[i].score = r->need_all[i] ? scores + (size_t)i * (size_t)r->config->n_vocab : NULL;
        rows[i].best = &r->best[i];
    }
    r->stats.head_s += cake_engine_trace(r, CAKE_SPAN_HEAD, start, n);
    cake_roofline_add(&r->stats.roofline, cake_logits_work(r->logits, n));
}

/* In blocks of at most lane_seqs rows: a prompt whose rows are all scored may have more. */
static void score_and_sample(cake_engine *r, const cake_wave_msg *msg, const cake_batch *batch)
{
    cake_wave *wave = msg->wave;
    for (int first = 0, n; first < batch->n_score; first += n) {
        n = batch->n_score - first < r->shape.lane_seqs ? batch->n_score - first : r->shape.lane_seqs;
        score_rows(r, msg, batch, first, n);
        double scored = cake_clock_now();
        cake_sampler_run(r->sampler, threads_of(r, wave), n);
        for (int i = 0; i < n; i++)
            apply_sample(r, batch->slot[first + i], &cake_wave_rows(wave)[batch->score[first + i]],
                         &cake_sampler_rows(r->sampler)[i]);
        r->stats.sample_s += cake_engine_trace(r, CAKE_SPAN_SAMPLE, scored, n);
    }
}

void cake_engine_receive(cake_engine *r, cake_wave_msg *msg)
{
    int lane = msg->wave->lane;
    CAKE_ASSERT(lane >= 0 && lane < r->shape.n_lane && cake_schedule_in_flight(r->schedule, lane));
    cake_schedule_complete(r->schedule, lane);
    r->n_in_flight--;
    record_nonfinite(r, msg->wave);
    score_and_sample(r, msg, r->lanes[lane].batch);
    cake_wave_msg_release(msg);
}
