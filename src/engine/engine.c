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

static void alloc_lanes(cake_engine *e)
{
    for (int i = 0; i < e->shape.n_lane; i++) {
        e->lanes[i].msg.wave = cake_arena_take(&e->arena, cake_engine_wave_bytes(e->config, &e->shape));
        if (e->embed->memory)
            e->lanes[i].body =
                cake_arena_take(&e->device_arena, cake_engine_body_bytes(e->config, &e->shape));
    }
    if (e->embed->memory)
        e->device_ids = cake_arena_take(&e->device_arena, (size_t)e->shape.max_row * sizeof *e->device_ids);
}

cake_err cake_engine_open(const cake_engine_setup *setup, const cake_sequence_io *io, cake_engine **out)
{
    const cake_config *config = cake_model_config(setup->model);
    const cake_schedule_shape *shape = setup->shape;
    const int n_thread = setup->n_thread;
    cake_engine *e = cake_alloc(1, sizeof *e);
    *e = (cake_engine){.model = setup->model,
                       .config = config,
                       .embed = setup->embed,
                       .plan = setup->plan,
                       .stem = -1,
                       .shape = *shape,
                       .max_score = cake_engine_max_score(config, shape),
                       .n_thread = n_thread,
                       .n_decode = setup->n_decode ? setup->n_decode : n_thread,
                       .best_allowed = !setup->head->memory,
                       .io = *io};
    cake_err err = cake_arena_open(&e->arena, "waves", cake_engine_host_bytes(config, shape));
    if (!err && e->embed->memory)
        err = cake_memory_open(e->embed->memory, &e->device_arena, "waves",
                               cake_engine_device_bytes(config, shape));
    if (!err)
        err = cake_logits_open(e->model, setup->head, e->max_score, n_thread, &e->logits);
    if (!err && setup->mtp && shape->n_draft)
        err = cake_mtp_open(
            &(cake_mtp_setup){e->model, setup->head, setup->mtp, setup->wave_bytes, shape->max_row}, &e->mtp);
    if (!err)
        err = cake_sampler_open(config->n_vocab, e->max_score, n_thread, &e->sampler);
    if (err) {
        cake_engine_close(e);
        return err;
    }
    e->prefixes = shape->share ? cake_prefix_tree_open() : NULL;
    e->schedule = cake_schedule_open(shape, e->prefixes);
    cake_request_queue_open(&e->io, config, e->prefixes, &e->queue);
    e->seqs = cake_alloc((size_t)shape->n_lane * (size_t)shape->lane_seqs, sizeof *e->seqs);
    e->lanes = cake_alloc((size_t)shape->n_lane, sizeof *e->lanes);
    e->need_all = cake_alloc((size_t)e->max_score, sizeof *e->need_all);
    e->best = cake_alloc((size_t)e->max_score, sizeof *e->best);
    e->positions = cake_alloc((size_t)shape->max_row, sizeof *e->positions);
    e->types = cake_alloc((size_t)shape->max_row, sizeof *e->types);
    e->pool_row = cake_alloc((size_t)e->max_score * CAKE_N_POOLING, sizeof *e->pool_row);
    e->row_taken = cake_alloc((size_t)e->max_score, sizeof *e->row_taken);
    e->round = cake_alloc((size_t)e->max_score, sizeof *e->round);
    e->predict_row = cake_alloc((size_t)e->max_score, sizeof *e->predict_row);
    e->predict_from = cake_alloc((size_t)e->max_score, sizeof *e->predict_from);
    e->predicted = cake_alloc((size_t)e->max_score, sizeof *e->predicted);
    e->drafting = cake_alloc((size_t)shape->lane_seqs, sizeof *e->drafting);
    e->speculation =
        shape->n_draft ? cake_speculation_open(shape->n_lane * shape->lane_seqs, config->n_vocab) : NULL;
    alloc_lanes(e);
    e->ids = cake_arena_take(&e->arena, (size_t)shape->max_row * sizeof *e->ids);
    e->stem_score = cake_arena_take(&e->arena, (size_t)config->n_vocab * sizeof *e->stem_score);
    *out = e;
    return CAKE_OK;
}

/* Closes a request and all of its choices that are in slots. */
static void close_lead(cake_engine *e, cake_sequence *lead)
{
    for (int i = 0; lead && i < e->shape.n_lane * e->shape.lane_seqs; i++)
        if (e->seqs[i] && e->seqs[i]->lead == lead)
            e->seqs[i] = NULL;
    cake_sequence_close(lead);
}

void cake_engine_close(cake_engine *e)
{
    if (!e)
        return;
    int n_slot = e->seqs ? e->shape.n_lane * e->shape.lane_seqs : 0;
    close_lead(e, e->lead);
    for (int i = 0; i < n_slot; i++)
        if (e->seqs[i])
            close_lead(e, e->seqs[i]->lead);
    cake_sampler_close(e->sampler);
    cake_logits_close(e->logits);
    cake_mtp_close(e->mtp);
    cake_request_queue_close(&e->queue);
    cake_schedule_close(e->schedule);
    cake_prefix_tree_close(e->prefixes);
    cake_arena_close(&e->arena);
    cake_memory_close(e->embed->memory, &e->device_arena);
    free(e->seqs);
    free(e->lanes);
    free(e->need_all);
    free(e->best);
    free(e->pool_row);
    free(e->row_taken);
    free(e->round);
    free(e->predict_row);
    free(e->predict_from);
    free(e->predicted);
    free(e->drafting);
    cake_speculation_close(e->speculation);
    free(e->positions);
    free(e->types);
    free(e);
}

void cake_engine_set_trace(cake_engine *e, cake_trace *trace)
{
    e->trace = trace;
}

void cake_engine_stop(cake_engine *e, cake_err err)
{
    e->err = e->err ? e->err : err;
}

cake_replica_progress cake_engine_progress(const cake_engine *e)
{
    return (cake_replica_progress){
        .begun = e->stats.begun, .begun_tokens = e->stats.begun_tokens, .rows = e->stats.rows};
}

int cake_engine_in_flight(const cake_engine *e)
{
    return e->n_in_flight;
}

int cake_engine_active(const cake_engine *e)
{
    return cake_schedule_active(e->schedule);
}

static bool is_finished(const cake_engine *e)
{
    return e->queue.closed && !e->queue.n && !e->lead && !cake_schedule_active(e->schedule);
}

bool cake_engine_done(const cake_engine *e)
{
    return !e->n_in_flight && (e->err || is_finished(e));
}

cake_err cake_engine_error(const cake_engine *e)
{
    return e->err == CAKE_STOPPED && is_finished(e) ? CAKE_OK : e->err;
}

cake_engine_stats cake_engine_statistics(const cake_engine *e)
{
    cake_engine_stats stats = e->stats;
    stats.schedule = cake_schedule_statistics(e->schedule);
    if (e->speculation)
        stats.speculation = cake_speculation_statistics(e->speculation);
    if (e->mtp)
        cake_roofline_merge(&stats.roofline, cake_mtp_roofline(e->mtp));
    return stats;
}

static int threads_of(const cake_engine *e, cake_wave *wave)
{
    return cake_wave_generates(wave) ? e->n_decode : e->n_thread;
}

/* The row of a token in the embedding of positions. RoBERTa counts from pad_token_id + 1 on, and not its
 * padding tokens, which a text may spell (create_position_ids_from_input_ids of transformers). */
static int32_t position_of(const cake_config *config, const int32_t *ids, int pos)
{
    const int32_t first = config->first_position, pad = first - 1;
    int32_t n_pad = 0;
    for (int i = 0; first && i <= pos; i++)
        n_pad += ids[i] == pad;
    return first && ids[pos] == pad ? pad : first + pos - n_pad;
}

/* Writes a batch into the lane's wave, embeds its tokens and sends it. */
static void send_batch(cake_engine *e, int lane, const cake_batch *batch, cake_link *first)
{
    cake_engine_lane *l = &e->lanes[lane];
    cake_wave *wave = l->msg.wave;
    *wave = (cake_wave){.kind = CAKE_WAVE_ROWS,
                        .lane = lane,
                        .n_row = batch->n_row,
                        .n_change = batch->n_change,
                        .dim = e->config->dim};
    memcpy(cake_wave_rows(wave), batch->rows, (size_t)batch->n_row * sizeof *batch->rows);
    memcpy(cake_wave_changes(wave), batch->changes, (size_t)batch->n_change * sizeof *batch->changes);
    l->sent = cake_clock_now();
    for (int i = 0; i < batch->n_row; i++) {
        const cake_row *row = &batch->rows[i];
        cake_sequence *s = e->seqs[row->slot];
        e->ids[i] = e->speculation ? cake_speculation_send(e->speculation, row->slot, &s->ids, row->pos)
                                   : s->ids.id[row->pos];
        l->sent = row->kind == CAKE_ROW_GENERATED ? l->sent : 0;
        e->positions[i] = position_of(e->config, s->ids.id, batch->rows[i].pos);
        e->types[i] = s->type_from && batch->rows[i].pos >= s->type_from;
        cake_engine_begin(e, s->lead);
    }
    double start = cake_clock_now();
    l->msg.body = l->body;
    if (l->body)
        cake_embed_fill_device(e->model, e->embed, e->ids, wave->n_row, e->device_ids, l->body);
    else
        cake_embed_fill(e->model, e->embed, threads_of(e, wave), e->ids, e->positions, e->types, wave);
    e->stats.embed_s += cake_trace_since(e->trace, CAKE_SPAN_EMBED, start, batch->n_row);
    e->stats.rows += batch->n_row;
    l->batch = batch;
    l->msg.in_flight = true;
    e->n_in_flight++;
    start = cake_clock_now();
    cake_link_send(first, &l->msg);
    cake_span sent = {
        .begin = start, .kind = CAKE_SPAN_SEND, .number = (int32_t)e->stats.waves++, .lane = lane};
    cake_trace_add(e->trace, sent, cake_clock_now());
}

/* Drafts tokens for a wave in which all sequences generate. The row of a draft's token gives the next one, so
 * the last token that an answer may have is never drafted. */
static void draft(cake_engine *e, int lane)
{
    int room = 0;
    const int n = e->speculation ? cake_schedule_generating(e->schedule, lane, e->drafting, &room) : 0;
    for (int i = 0; i < n; i++) {
        const cake_sequence *s = e->seqs[e->drafting[i]];
        cake_speculation_find(e->speculation, e->drafting[i], &s->ids, s->max_len - 1 - (int)s->ids.len);
    }
    if (n)
        cake_speculation_choose(e->speculation, e->drafting, n,
                                room < e->shape.n_draft ? room : e->shape.n_draft);
    for (int i = 0; i < n; i++)
        cake_schedule_draft(e->schedule, e->drafting[i],
                            cake_speculation_length(e->speculation, e->drafting[i]));
}

bool cake_engine_send(cake_engine *e, cake_link *first)
{
    enum { FIRST = 16, STEP = 4 }; /* requests to read ahead: before the first wave, after each further one */
    bool sent = false;
    if (!e->stats.waves && !e->err)
        cake_engine_read(e, FIRST - e->queue.n);
    cake_engine_admit(e);
    for (int lane = 0; lane < e->shape.n_lane && !e->err; lane++) {
        /* A wave comes back in a message of another edge; the lane's own one may still be in flight then. */
        if (cake_schedule_in_flight(e->schedule, lane) || e->lanes[lane].msg.in_flight)
            continue;
        draft(e, lane);
        const cake_batch *batch = cake_schedule_next_batch(e->schedule, lane);
        while (batch->n_overflow) {
            for (int i = 0; i < batch->n_overflow; i++)
                cake_engine_overflow(e, batch->overflow[i]);
            batch = cake_schedule_next_batch(e->schedule, lane);
        }
        if (batch->n_row) {
            send_batch(e, lane, batch, first);
            sent = true;
        }
    }
    if (sent && !e->err) /* while the other ranks compute */
        cake_engine_read(e, STEP);
    return sent;
}

/* Warns once which rank has the layer. The record does not name it: results must not depend on the plan. */
static void warn_nonfinite(cake_engine *e, int layer, const char *where)
{
    int rank = 0;
    for (int i = 0; i < e->plan->n_hop; i++)
        if (layer >= e->plan->hop[i].first && layer < e->plan->hop[i].first + e->plan->hop[i].count)
            rank = e->plan->hop[i].rank;
    if (!e->nonfinite_warned)
        cake_log(CAKE_WARN, "engine", "%s on rank %d has NaN or infinity", where, e->plan->first + rank);
    e->nonfinite_warned = true;
}

/* Fails a request with a value that is not finite, and names the layer that gave the first one. If all rows
 * of a prompt are scored, the rows before this one were finite and only this row's mark counts: the mark of
 * the sequence may stem from later rows of the same wave. Which of several choices fails first depends on the
 * waves, so nothing is said about it. */
static void fail_nonfinite(cake_engine *e, int slot, const cake_row *row)
{
    const cake_sequence *s = e->seqs[slot];
    cake_request *request = &s->lead->request;
    char where[64];
    int nonfinite = row->pos + 1 < s->n_prompt ? row->nonfinite : s->lead->nonfinite;
    int layer = nonfinite ? nonfinite - CAKE_ROW_NONFINITE(0) : -1;
    if (layer >= 0)
        snprintf(where, sizeof where, "layer %d", layer);
    else
        snprintf(where, sizeof where, "%s", nonfinite ? "the embedding" : "the final norm or the head");
    request->err =
        row->pos >= s->n_prompt && request->params.n > 1
            ? cake_fault_set(&request->fault, NULL,
                             "the model's scores of one of %lld choices are not finite numbers",
                             (long long)request->params.n)
            : cake_fault_set(&request->fault, NULL,
                             "the model's scores after position %d are not finite numbers: %s is the first "
                             "with NaN or infinite values",
                             row->pos, where);
    request->fault.status = 500;
    warn_nonfinite(e, layer, where);
}

/* Why a row is scored: for the logprob of a prompt token, for the first token after a stem's prompt, for the
 * next token, or only to check that the scores are finite. */
static cake_sample_row purpose_of_row(const cake_engine *e, int slot, const cake_row *row)
{
    cake_sequence *s = e->seqs[slot];
    cake_sample_row out = {.sequence = s, .what = CAKE_SAMPLE_CHECK};
    if (!s || s->lead->request.err)
        return out; /* an earlier block of rows has failed the request */
    if (row->pos + 1 < s->n_prompt) {
        out.what = CAKE_SAMPLE_SCORE;
        out.id = s->ids.id[row->pos + 1];
    } else if (slot != e->stem && s->max_len > s->n_prompt) {
        out.what = CAKE_SAMPLE_SAMPLE;
    }
    return out;
}

/* A row that is not finite spoils other rows of its sequence from the next attention on. So the cause is the
 * earliest layer that any row is marked with. */
static void record_nonfinite(cake_sequence *s, const cake_row *row)
{
    if (row->nonfinite && (!s->lead->nonfinite || row->nonfinite < s->lead->nonfinite))
        s->lead->nonfinite = row->nonfinite;
}

/* The same for the rows of a wave, but those of drafts, which may be of no answer. */
static void record_all_nonfinite(cake_engine *e, cake_wave *wave)
{
    const cake_row *rows = cake_wave_rows(wave);
    for (int i = 0; i < wave->n_row; i++)
        if (rows[i].pos < (int)e->seqs[rows[i].slot]->ids.len)
            record_nonfinite(e->seqs[rows[i].slot], &rows[i]);
}

static void apply_sample(cake_engine *e, int slot, const cake_row *row, const cake_sample_row *sampled)
{
    cake_sequence *s = e->seqs[slot];
    if (!s) /* an earlier row of the wave has failed the request */
        return;
    record_nonfinite(s, row);
    if (!s->lead->request.err && !sampled->finite)
        fail_nonfinite(e, slot, row);
    if (!s->lead->request.err && sampled->stuck)
        cake_engine_stuck(s, sampled);
    if (s->lead->request.err) { /* one choice has failed, so the others are of no use */
        if (slot != e->stem)
            cake_engine_retire(e, slot);
    } else if (sampled->what == CAKE_SAMPLE_SCORE) {
        if (cake_sequence_score_prompt(s, row->pos + 1, sampled->logprobs, sampled->rank))
            cake_engine_retire_prompt(e, slot);
    } else if (slot == e->stem) {
        memcpy(e->stem_score, sampled->score, (size_t)e->config->n_vocab * sizeof *sampled->score);
        e->stem_scored = true;
    } else if (sampled->what == CAKE_SAMPLE_CHECK) {
        cake_engine_retire_prompt(e, slot);
    } else {
        if (e->speculation)
            cake_speculation_learn(e->speculation, slot, row->pos + 1, sampled->id);
        cake_engine_token(e, slot, sampled);
    }
}

/* ---- drafts: rows of one answer are sampled one after another */

static const cake_row *scored_row(const cake_wave_msg *msg, const cake_batch *batch, int i)
{
    return &cake_wave_rows(msg->wave)[batch->score_row[i]];
}

static bool is_generated(const cake_row *row)
{
    return row->kind == CAKE_ROW_GENERATED;
}

/* Counts, for each of the scored rows [first, first + n), those of the same answer before it. Returns the
 * number of rounds that it takes to sample all. */
static int count_rounds(cake_engine *e, const cake_wave_msg *msg, const cake_batch *batch, int first, int n)
{
    int most = 0;
    for (int i = 0; i < n; i++) {
        const bool follows = i && batch->score_slot[first + i] == batch->score_slot[first + i - 1] &&
                             is_generated(scored_row(msg, batch, first + i - 1));
        e->round[i] = follows ? e->round[i - 1] + 1 : 0;
        most = e->round[i] > most ? e->round[i] : most;
    }
    return most + 1;
}

/* Whether a row has its turn: not if its token is one that the answer has not got. */
static bool has_turn(const cake_engine *e, int slot, const cake_row *row)
{
    const cake_sequence *s = e->seqs[slot];
    return !e->speculation || !is_generated(row) ||
           (s && cake_speculation_holds(e->speculation, slot, &s->ids, row->pos));
}

/* Chooses the sampler's rows of a round. */
static void begin_round(cake_engine *e, const cake_wave_msg *msg, const cake_batch *batch, int first, int n,
                        int round)
{
    cake_sample_row *rows = cake_sampler_rows(e->sampler);
    for (int i = 0; i < n; i++) {
        const int slot = batch->score_slot[first + i];
        rows[i].skip = e->round[i] != round || !has_turn(e, slot, scored_row(msg, batch, first + i));
        if (!rows[i].skip)
            rows[i].sequence = e->seqs[slot];
    }
}

/* Prepares the sampler's rows for scored rows [first, first + n): their purpose and their scores, or only the
 * best scores where these are enough. */
static void score_rows(cake_engine *e, const cake_wave_msg *msg, const cake_batch *batch, int first, int n)
{
    cake_wave *wave = msg->wave;
    const int32_t *row = batch->score_row + first;
    cake_sample_row *rows = cake_sampler_rows(e->sampler);
    for (int i = 0; i < n; i++)
        rows[i] = purpose_of_row(e, batch->score_slot[first + i], scored_row(msg, batch, first + i));
    begin_round(e, msg, batch, first, n, 0);
    cake_sampler_constrain(e->sampler, threads_of(e, wave), n, e->best_allowed);
    for (int i = 0; i < n; i++) {
        int needs = cake_sample_row_topk(&rows[i], e->config->n_vocab);
        e->need_all[i] = !needs || batch->score_slot[first + i] == e->stem;
        cake_topk_clear(&e->best[i], needs ? needs : 1);
        e->best[i].allowed = e->need_all[i] ? NULL : rows[i].allowed;
    }
    double start = cake_clock_now();
    float *scores = cake_logits_forward(e->logits, threads_of(e, wave), wave, msg->body,
                                        &(cake_logits_rows){n, row, e->need_all, NULL}, e->best);
    if (!scores)
        cake_comm_abort();
    for (int i = 0; i < n; i++) {
        rows[i].finite = rows[i].sequence && !e->best[i].nonfinite;
        rows[i].score = e->need_all[i] ? scores + (size_t)i * (size_t)e->config->n_vocab : NULL;
        rows[i].best = &e->best[i];
    }
    e->stats.head_s += cake_trace_since(e->trace, CAKE_SPAN_HEAD, start, n);
    cake_roofline_add(&e->stats.roofline, cake_logits_work(e->logits, n));
}

static void sample_rows(cake_engine *e, const cake_wave_msg *msg, const cake_batch *batch, int first, int n)
{
    const int n_thread = threads_of(e, msg->wave), n_round = count_rounds(e, msg, batch, first, n);
    cake_sample_row *rows = cake_sampler_rows(e->sampler);
    score_rows(e, msg, batch, first, n);
    double scored = cake_clock_now();
    for (int round = 0; round < n_round; round++) {
        if (round) {
            begin_round(e, msg, batch, first, n, round);
            cake_sampler_constrain(e->sampler, n_thread, n, false);
        }
        cake_sampler_run(e->sampler, n_thread, n);
        for (int i = 0; i < n; i++)
            if (!rows[i].skip)
                apply_sample(e, batch->score_slot[first + i], scored_row(msg, batch, first + i), &rows[i]);
    }
    e->stats.sample_s += cake_trace_since(e->trace, CAKE_SPAN_SAMPLE, scored, n);
}

/* The rows from `first` on that are taken together: the same is wanted of all, and they fit the buffers (a
 * prompt whose rows are all scored may have more). */
static int rows_together(const cake_engine *e, const cake_batch *batch, int first)
{
    const bool pools = cake_engine_pools(e, batch->score_slot[first]);
    int n = 1;
    while (n < e->max_score && first + n < batch->n_score &&
           cake_engine_pools(e, batch->score_slot[first + n]) == pools)
        n++;
    return n;
}

static void pool_rows(cake_engine *e, const cake_wave_msg *msg, const cake_batch *batch, int first, int n)
{
    double start = cake_clock_now();
    cake_engine_pool_rows(e, threads_of(e, msg->wave), msg, batch, first, n);
    for (int i = 0; i < n; i++) {
        const int slot = batch->score_slot[first + i];
        const cake_row *row = &cake_wave_rows(msg->wave)[batch->score_row[first + i]];
        if (!e->seqs[slot]) /* an earlier row of the wave has ended it */
            continue;
        const cake_pooled pooled = cake_engine_pooled(e, threads_of(e, msg->wave), i, e->seqs[slot], row);
        if (pooled == CAKE_POOLED_NONFINITE)
            fail_nonfinite(e, slot, row);
        if (pooled != CAKE_POOLED_PART)
            cake_engine_retire(e, slot);
    }
    e->stats.head_s += cake_trace_since(e->trace, CAKE_SPAN_HEAD, start, n);
}

static void finish_rows(cake_engine *e, const cake_wave_msg *msg, const cake_batch *batch)
{
    for (int first = 0, n; first < batch->n_score; first += n) {
        n = rows_together(e, batch, first);
        (cake_engine_pools(e, batch->score_slot[first]) ? pool_rows : sample_rows)(e, msg, batch, first, n);
    }
}

void cake_engine_receive(cake_engine *e, cake_wave_msg *msg)
{
    int lane = msg->wave->lane;
    CAKE_ASSERT(lane >= 0 && lane < e->shape.n_lane && cake_schedule_in_flight(e->schedule, lane));
    cake_schedule_complete(e->schedule, lane);
    e->n_in_flight--;
    record_all_nonfinite(e, msg->wave);
    finish_rows(e, msg, e->lanes[lane].batch);
    for (int i = 0; e->speculation && i < msg->wave->n_row; i++)
        cake_speculation_drop(e->speculation, cake_wave_rows(msg->wave)[i].slot);
    if (e->mtp)
        cake_engine_predict(e, threads_of(e, msg->wave), msg->wave);
    if (e->speculation && e->lanes[lane].sent > 0)
        cake_speculation_timed(e->speculation, msg->wave->n_row, cake_clock_now() - e->lanes[lane].sent);
    cake_wave_msg_release(msg);
}
