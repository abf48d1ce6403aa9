/* SPDX-License-Identifier: Apache-2.0
 *
 * In: sequences, waves that are back. Out: waves, finished sequences. The pipeline calls.
 * Invariant: slot s of the schedule is sequence seqs[s], from admission to retirement.
 */
#include "run/root.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "embed/embed.h"
#include "logits/logits.h"
#include "run/choose.h"

typedef struct root_lane {
    cake_parcel parcel;      /* what the lane's waves leave in */
    const cake_batch *batch; /* of the wave under way */
} root_lane;

struct cake_root {
    const cake_model *model;
    const cake_config *config;
    const cake_kernels *kernels;
    const cake_plan *plan;
    cake_schedule_shape shape;
    int n_thread;
    cake_conductor conductor;
    cake_prefixes *prefixes; /* NULL: nothing is shared */
    cake_window window;
    cake_schedule *schedule;
    cake_sequence **seqs; /* [n_lane * lane_seqs] */
    root_lane *lanes;     /* [n_lane] */
    int n_away;
    cake_sequence *lead; /* of several choices, not all of which are begun; NULL */
    int stem;            /* slot that holds the lead's prompt; -1: none, choices are admitted alone */
    bool stem_known;     /* stem_score is */
    cake_err err;
    cake_arena arena;  /* the lanes' waves and what follows */
    int32_t *ids;      /* [max_tok] */
    float *stem_score; /* [n_vocab] of the token behind the stem's prompt */
    cake_chooser *chooser;
    cake_logits *logits;
    bool *wanted;    /* [lane_seqs] of the rows that are scored: all of their scores are */
    cake_best *best; /* [lane_seqs] of their scores */
    cake_root_stats stats;
    cake_trace *trace; /* or NULL */
};

static size_t wave_bytes(const cake_config *config, const cake_schedule_shape *shape)
{
    return cake_arena_round(cake_wave_bytes(shape->max_tok, cake_schedule_changes(shape), config->dim));
}

static size_t own_bytes(const cake_config *config, const cake_schedule_shape *shape)
{
    return (size_t)shape->n_lane * wave_bytes(config, shape) +
           cake_arena_round((size_t)shape->max_tok * sizeof(int32_t)) +
           cake_arena_round((size_t)config->n_vocab * sizeof(float));
}

size_t cake_root_bytes(const cake_config *config, const cake_kernels *kernels,
                       const cake_schedule_shape *shape, int n_thread)
{
    return own_bytes(config, shape) + cake_logits_bytes(config, kernels, shape->lane_seqs, n_thread) +
           cake_chooser_bytes(config->n_vocab, shape->lane_seqs, n_thread);
}

cake_err cake_root_open(const cake_model *model, const cake_kernels *kernels, const cake_plan *plan,
                        const cake_schedule_shape *shape, int n_thread, const cake_conductor *conductor,
                        cake_root **out)
{
    const cake_config *config = cake_model_config(model);
    cake_root *r = cake_alloc(1, sizeof *r);
    *r = (cake_root){.model = model,
                     .config = config,
                     .kernels = kernels,
                     .plan = plan,
                     .stem = -1,
                     .shape = *shape,
                     .n_thread = n_thread,
                     .conductor = *conductor};
    cake_err err = cake_arena_open(&r->arena, "waves", own_bytes(config, shape));
    if (!err)
        err = cake_logits_open(model, kernels, shape->lane_seqs, n_thread, &r->logits);
    if (!err)
        err = cake_chooser_open(config->n_vocab, shape->lane_seqs, n_thread, &r->chooser);
    if (err) {
        cake_root_close(r);
        return err;
    }
    r->prefixes = shape->share ? cake_prefixes_open() : NULL;
    r->schedule = cake_schedule_open(shape, r->prefixes);
    cake_window_open(&r->conductor, config, r->prefixes, &r->window);
    r->seqs = cake_alloc((size_t)shape->n_lane * (size_t)shape->lane_seqs, sizeof *r->seqs);
    r->lanes = cake_alloc((size_t)shape->n_lane, sizeof *r->lanes);
    r->wanted = cake_alloc((size_t)shape->lane_seqs, sizeof *r->wanted);
    r->best = cake_alloc((size_t)shape->lane_seqs, sizeof *r->best);
    for (int i = 0; i < shape->n_lane; i++)
        r->lanes[i].parcel.wave = cake_arena_take(&r->arena, wave_bytes(config, shape));
    r->ids = cake_arena_take(&r->arena, (size_t)shape->max_tok * sizeof *r->ids);
    r->stem_score = cake_arena_take(&r->arena, (size_t)config->n_vocab * sizeof *r->stem_score);
    *out = r;
    return CAKE_OK;
}

/* With all of its choices that are in slots. */
static void close_lead(cake_root *r, cake_sequence *lead)
{
    for (int i = 0; lead && i < r->shape.n_lane * r->shape.lane_seqs; i++)
        if (r->seqs[i] && r->seqs[i]->lead == lead)
            r->seqs[i] = NULL;
    cake_sequence_close(lead);
}

void cake_root_close(cake_root *r)
{
    if (!r)
        return;
    int n_slot = r->seqs ? r->shape.n_lane * r->shape.lane_seqs : 0;
    close_lead(r, r->lead);
    for (int i = 0; i < n_slot; i++)
        if (r->seqs[i])
            close_lead(r, r->seqs[i]->lead);
    cake_chooser_close(r->chooser);
    cake_logits_close(r->logits);
    cake_window_close(&r->window);
    cake_schedule_close(r->schedule);
    cake_prefixes_close(r->prefixes);
    cake_arena_close(&r->arena);
    free(r->seqs);
    free(r->lanes);
    free(r->wanted);
    free(r->best);
    free(r);
}

cake_err cake_root_error(const cake_root *r)
{
    return r->err;
}

void cake_root_watch(cake_root *r, cake_trace *trace)
{
    r->trace = trace;
}

/* What ended just now; its seconds. */
static double trace(cake_root *r, cake_span_kind kind, double begin, int rows)
{
    double now = cake_clock_now();
    cake_trace_add(r->trace, (cake_span){.begin = begin, .kind = (int32_t)kind, .rows = rows}, now);
    return now - begin;
}

int cake_root_away(const cake_root *r)
{
    return r->n_away;
}

bool cake_root_done(const cake_root *r)
{
    return !r->n_away && (r->err || (r->window.exhausted && !r->window.n && !r->lead &&
                                     !cake_schedule_active(r->schedule)));
}

cake_root_stats cake_root_statistics(const cake_root *r)
{
    cake_root_stats stats = r->stats;
    stats.schedule = cake_schedule_statistics(r->schedule);
    return stats;
}

/* Hands a finished request back; the first error stops all further work. */
static void finish(cake_root *r, cake_sequence *lead)
{
    double start = cake_clock_now();
    cake_window_leave(&r->window, lead);
    if (r->err)
        cake_sequence_close(lead);
    else
        r->err = r->conductor.done(r->conductor.self, lead);
    r->stats.write_s += trace(r, CAKE_SPAN_RECORD, start, 0);
}

/* An answer is over. Its request is, when all of its choices are. */
static void retire(cake_root *r, int slot)
{
    cake_sequence *lead = r->seqs[slot]->lead;
    bool several = r->seqs[slot] != lead;
    cake_schedule_retire(r->schedule, slot);
    r->seqs[slot] = NULL;
    lead->n_done += several;
    if (lead != r->lead && lead->n_done == lead->n_choice)
        finish(r, lead);
}

/* Takes the stem out of its slot: all choices are begun, or there is no room for them beside it. */
static void drop_stem(cake_root *r)
{
    if (r->stem < 0)
        return;
    cake_schedule_retire(r->schedule, r->stem);
    r->seqs[r->stem] = NULL;
    r->stem = -1;
}

/* No further choice of the lead will begin. */
static void release_lead(cake_root *r)
{
    cake_sequence *lead = r->lead;
    drop_stem(r);
    r->lead = NULL;
    if (lead->n_done == lead->n_choice)
        finish(r, lead);
}

static void enter(cake_root *r, int slot, cake_sequence *s)
{
    r->seqs[slot] = s;
    s->past =
        cake_past_open(&s->lead->request.params, s->ids.id, s->n_prompt, r->config->eos, r->config->n_eos);
}

static void next_token(cake_root *r, int slot, const cake_draw *draw);

/* What the schedule has to know of a request. */
static int flags_of(const cake_sequence *lead, bool scored)
{
    const cake_params *p = &lead->request.params;
    bool sure = p->ignore_eos == 1 && !p->n_stop && !p->stop_ids.len;
    return (scored ? CAKE_SEQ_SCORED : 0) | (sure ? CAKE_SEQ_SURE : 0);
}

/* Begins one more choice of the lead. False: not now. */
static bool admit_choice(cake_root *r)
{
    cake_sequence *lead = r->lead;
    if (lead->n_choice == lead->request.params.n || lead->request.err) {
        if (r->stem >= 0 && cake_schedule_riding(r->schedule, r->stem))
            return false;
        release_lead(r);
        return true;
    }
    if (r->stem >= 0) {
        int slot = r->stem_known ? cake_schedule_fork(r->schedule, r->stem) : CAKE_FORK_LATER;
        if (slot == CAKE_FORK_NEVER)
            drop_stem(r);
        if (slot >= 0) {
            enter(r, slot, cake_sequence_branch(lead));
            cake_draw *draw = cake_chooser_rows(r->chooser);
            *draw = (cake_draw){.sequence = r->seqs[slot],
                                .finite = true,
                                .score = r->stem_score,
                                .what = CAKE_CHOOSE_SAMPLE};
            cake_chooser_run(r->chooser, 1);
            next_token(r, slot, draw);
        }
        return slot != CAKE_FORK_LATER;
    }
    if (!cake_schedule_room(r->schedule))
        return false;
    bool scored = cake_sequence_scores_prompt(lead) && lead->n_prompt_scored < lead->n_prompt;
    bool again = lead->n_choice > 0 || r->shape.n_lane * r->shape.lane_seqs > 1; /* there was a stem */
    int flags = flags_of(lead, scored) | (again ? CAKE_SEQ_AGAIN : 0);
    int slot = cake_schedule_admit(r->schedule, lead->n_prompt, lead->max_len, lead->chain, flags);
    enter(r, slot, cake_sequence_branch(lead));
    return true;
}

/* Nothing of the model is asked for: the answers are the prompt. */
static void give_back_empty(cake_root *r, cake_sequence *lead)
{
    while (lead->request.params.n > 1 && lead->n_choice < lead->request.params.n)
        cake_sequence_branch(lead);
    finish(r, lead);
}

static void admit_request(cake_root *r, cake_sequence *s)
{
    bool wants_tokens = s->max_len > s->n_prompt, scored = cake_sequence_scores_prompt(s);
    int flags = flags_of(s, scored);
    s->admitted = cake_clock_now();
    if (!wants_tokens && (!scored || s->n_prompt == 1)) {
        give_back_empty(r, s);
    } else if (wants_tokens && s->request.params.n > 1) {
        r->lead = s;
        r->stem_known = false;
        if (r->shape.n_lane * r->shape.lane_seqs > 1) {
            r->stem =
                cake_schedule_admit(r->schedule, s->n_prompt, s->max_len, s->chain, flags | CAKE_SEQ_STEM);
            r->seqs[r->stem] = s;
        }
    } else {
        enter(r, cake_schedule_admit(r->schedule, s->n_prompt, s->max_len, s->chain, flags), s);
    }
}

/* Up to n requests more. */
static void read_ahead(cake_root *r, int n)
{
    double start = cake_clock_now();
    int before = r->window.n;
    r->err = cake_window_read(&r->window, n);
    if (r->window.n > before || r->err) /* it is asked for at every turn */
        r->stats.read_s += trace(r, CAKE_SPAN_READ, start, 0);
}

/* One of several choices keeps others from being admitted until all of its choices are. */
static void admit(cake_root *r)
{
    while (!r->err) {
        if (r->lead) {
            if (!admit_choice(r))
                return;
            continue;
        }
        if (!cake_schedule_room(r->schedule))
            return;
        if (!r->window.n)
            read_ahead(r, 1);
        cake_sequence *sequence = cake_window_take(&r->window);
        if (sequence)
            admit_request(r, sequence);
        else if (r->window.exhausted)
            return;
    }
}

static void overflow(cake_root *r, int slot)
{
    cake_request *request = &r->seqs[slot]->lead->request;
    request->err = cake_fault_set(
        &request->fault, NULL,
        "a sequence of %zu tokens alone is more than the KV memory holds (%d pages of %d tokens); "
        "try again with more --kv-memory or more ranks",
        r->seqs[slot]->ids.len, r->shape.n_page[0], CAKE_PAGE);
    request->fault.status = 500;
    if (slot == r->stem)
        release_lead(r);
    else
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
    r->stats.embed_s += trace(r, CAKE_SPAN_EMBED, start, batch->n_tok);
    r->stats.rows += batch->n_tok;
    l->batch = batch;
    l->parcel.busy = true;
    r->n_away++;
    start = cake_clock_now();
    cake_link_send(first, &l->parcel);
    cake_span sent = {
        .begin = start, .kind = CAKE_SPAN_SEND, .number = (int32_t)r->stats.waves++, .lane = lane};
    cake_trace_add(r->trace, sent, cake_clock_now());
}

bool cake_root_send(cake_root *r, cake_link *first)
{
    enum { FIRST = 16, STEP = 4 }; /* requests ahead before the first wave, and a further time */
    bool sent = false;
    if (!r->stats.waves && !r->err)
        read_ahead(r, FIRST - r->window.n);
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
    if (sent && !r->err) /* while the others compute */
        read_ahead(r, STEP);
    return sent;
}

/* A sequence goes on with the token that was drawn, or ends. */
static void next_token(cake_root *r, int slot, const cake_draw *draw)
{
    cake_sequence *s = r->seqs[slot];
    bool finished = cake_sequence_push(s, draw->id, draw->scored, r->config->eos, r->config->n_eos);
    r->conductor.token(r->conductor.self, s);
    if (finished)
        retire(r, slot);
    else
        cake_schedule_token(r->schedule, slot);
}

/* Says which layer of which rank gave the first number that is none. */
static void break_off(cake_root *r, int slot, const cake_row *row)
{
    cake_request *request = &r->seqs[slot]->lead->request;
    char where[96] = "the final norm or the head, on rank 0, gave the first";
    int broken = r->seqs[slot]->lead->broken, layer = broken - CAKE_ROW_BROKEN(0);
    if (broken == CAKE_ROW_BROKEN(-1))
        snprintf(where, sizeof where, "the embedding, on rank 0, gave the first");
    for (int i = 0; broken && i < r->plan->n_hop; i++) {
        const cake_hop *hop = &r->plan->hop[i];
        if (layer >= hop->first && layer < hop->first + hop->count)
            snprintf(where, sizeof where, "layer %d, on rank %d, gave the first", layer, hop->rank);
    }
    request->err =
        cake_fault_set(&request->fault, NULL,
                       "the model's scores behind position %d are not finite numbers: %s", row->pos, where);
    request->fault.status = 500;
}

/* What a row's scores will be for: a prompt's token, the token behind a stem, the next one, or nothing but to be
 * finite. */
static cake_draw draw_of(const cake_root *r, int slot, const cake_row *row)
{
    cake_sequence *s = r->seqs[slot];
    cake_draw draw = {.sequence = s, .what = CAKE_CHOOSE_CHECK};
    if (!s || s->lead->request.err)
        return draw; /* an earlier block of rows failed it */
    if (row->pos + 1 < s->n_prompt) {
        draw.what = CAKE_CHOOSE_SCORE;
        draw.id = s->ids.id[row->pos + 1];
    } else if (slot != r->stem && s->max_len > s->n_prompt) {
        draw.what = CAKE_CHOOSE_SAMPLE;
    }
    return draw;
}

static void take(cake_root *r, int slot, const cake_row *row, const cake_draw *draw)
{
    cake_sequence *s = r->seqs[slot];
    if (!s) /* an earlier row of the wave failed it */
        return;
    if (!s->lead->request.err && !draw->finite)
        break_off(r, slot, row);
    if (s->lead->request.err) { /* of one choice, so all others are of no use */
        if (slot != r->stem)
            retire(r, slot);
    } else if (draw->what == CAKE_CHOOSE_SCORE) {
        cake_sequence_score_prompt(s, row->pos + 1, draw->scored);
    } else if (slot == r->stem) {
        memcpy(r->stem_score, draw->score, (size_t)r->config->n_vocab * sizeof *draw->score);
        r->stem_known = true;
    } else if (draw->what == CAKE_CHOOSE_CHECK) {
        cake_schedule_retire(r->schedule, slot);
        r->seqs[slot] = NULL;
        give_back_empty(r, s);
    } else {
        next_token(r, slot, draw);
    }
}

/* A row that is not finite breaks others of its sequence, from the next attention on: the earliest layer tells where
 * it began. */
static void note_broken(cake_root *r, cake_wave *wave)
{
    const cake_row *rows = cake_wave_rows(wave);
    for (int i = 0; i < wave->n_tok; i++) {
        cake_sequence *s = r->seqs[rows[i].slot];
        if (rows[i].broken && (!s->lead->broken || rows[i].broken < s->lead->broken))
            s->lead->broken = rows[i].broken;
    }
}

/* Rows [first, first + n) of those that are scored: what for, then their scores, if these are wanted. */
static void score(cake_root *r, cake_wave *wave, const cake_batch *batch, int first, int n)
{
    const int32_t *row = batch->score + first;
    cake_draw *draw = cake_chooser_rows(r->chooser);
    for (int i = 0; i < n; i++) {
        draw[i] = draw_of(r, batch->slot[first + i], &cake_wave_rows(wave)[row[i]]);
        r->wanted[i] = cake_draw_wants(&draw[i]) || batch->slot[first + i] == r->stem;
    }
    double start = cake_clock_now();
    float *scores = cake_logits_forward(r->logits, wave, row, n, r->wanted, r->best);
    for (int i = 0; i < n; i++) {
        draw[i].finite = draw[i].sequence && !r->best[i].broken;
        draw[i].score = r->wanted[i] ? scores + (size_t)i * (size_t)r->config->n_vocab : NULL;
        draw[i].id = draw[i].what == CAKE_CHOOSE_SAMPLE ? r->best[i].column : draw[i].id;
    }
    r->stats.head_s += trace(r, CAKE_SPAN_HEAD, start, n);
    cake_roof_add(&r->stats.roof, cake_logits_work(r->logits, n));
}

/* Scores and samples in blocks: a prompt whose rows are all wanted has more of them than a lane has sequences. */
static void continue_all(cake_root *r, cake_wave *wave, const cake_batch *batch)
{
    for (int first = 0, n; first < batch->n_score; first += n) {
        n = batch->n_score - first < r->shape.lane_seqs ? batch->n_score - first : r->shape.lane_seqs;
        score(r, wave, batch, first, n);
        double scored = cake_clock_now();
        cake_chooser_run(r->chooser, n);
        for (int i = 0; i < n; i++)
            take(r, batch->slot[first + i], &cake_wave_rows(wave)[batch->score[first + i]],
                 &cake_chooser_rows(r->chooser)[i]);
        r->stats.sample_s += trace(r, CAKE_SPAN_SAMPLE, scored, n);
    }
}

void cake_root_receive(cake_root *r, cake_parcel *parcel)
{
    int lane = parcel->wave->lane;
    CAKE_ASSERT(lane >= 0 && lane < r->shape.n_lane && cake_schedule_away(r->schedule, lane));
    cake_schedule_back(r->schedule, lane);
    r->n_away--;
    note_broken(r, parcel->wave);
    continue_all(r, parcel->wave, r->lanes[lane].batch);
    cake_parcel_release(parcel);
}
