/* SPDX-License-Identifier: Apache-2.0
 *
 * In: sequences from the queue, sampled tokens. Out: finished requests, to the io.
 * Invariant: slot s of the schedule is sequence seqs[s], from admission to retirement; a request of several
 * choices goes back to the io when its last choice has ended and no further one will begin.
 */
#include "base/clock.h"
#include "engine/internal.h"

void cake_engine_begin(cake_engine *r, cake_sequence *lead)
{
    r->stats.begun += !lead->begun;
    r->stats.begun_tok += lead->begun ? 0 : lead->n_prompt;
    lead->begun = true;
}

/* Hands a finished request back; the first error stops all further work. */
static void finish_request(cake_engine *r, cake_sequence *lead)
{
    double start = cake_clock_now();
    cake_engine_begin(r, lead);
    cake_request_queue_forget(&r->queue, lead);
    cake_err err = CAKE_OK;
    if (r->err && r->err != CAKE_STOPPED)
        cake_sequence_close(lead);
    else
        err = r->io.done(r->io.self, lead);
    r->err = err ? err : r->err;
    r->stats.write_s += cake_engine_trace(r, CAKE_SPAN_RECORD, start, 0);
}

void cake_engine_retire(cake_engine *r, int slot)
{
    cake_sequence *lead = r->seqs[slot]->lead;
    bool several = r->seqs[slot] != lead;
    cake_schedule_retire(r->schedule, slot);
    r->seqs[slot] = NULL;
    lead->n_done += several;
    if (lead != r->lead && lead->n_done == lead->n_choice)
        finish_request(r, lead);
}

/* Frees the stem's slot: all choices have begun, or its pages leave too few for them. */
static void drop_stem(cake_engine *r)
{
    if (r->stem < 0)
        return;
    cake_schedule_retire(r->schedule, r->stem);
    r->seqs[r->stem] = NULL;
    r->stem = -1;
}

/* No further choice of the lead will begin. */
static void release_lead(cake_engine *r)
{
    cake_sequence *lead = r->lead;
    drop_stem(r);
    r->lead = NULL;
    for (; lead->n_resumed; lead->n_resumed--) /* it has failed: these are not resumed */
        lead->n_done += !lead->choice[lead->n_choice - lead->n_resumed]->over;
    if (lead->n_done == lead->n_choice)
        finish_request(r, lead);
}

static void occupy_slot(cake_engine *r, int slot, cake_sequence *s)
{
    r->seqs[slot] = s;
    s->penalties = cake_penalties_open(&s->lead->request.params, s->ids.id, s->n_prompt, r->config->eos,
                                       r->config->n_eos);
    for (size_t i = (size_t)s->n_prompt; i < s->ids.len; i++) /* tokens of an earlier run */
        cake_penalties_add(s->penalties, s->ids.id[i]);
}

void cake_engine_token(cake_engine *r, int slot, const cake_sample_row *row)
{
    cake_sequence *s = r->seqs[slot];
    double now = cake_clock_now(),
           waited = now - (s->ids.len == (size_t)s->n_prompt ? s->admitted : s->latest);
    bool finished = cake_sequence_push(s, row->id, row->scored, r->config->eos, r->config->n_eos);
    s->latest = now;
    r->io.token(r->io.self, s, waited);
    if (finished)
        cake_engine_retire(r, slot);
    else
        cake_schedule_token(r->schedule, slot);
}

static int schedule_flags(const cake_sequence *lead, bool scored)
{
    const cake_params *p = &lead->request.params;
    bool sure = p->ignore_eos == 1 && !p->n_stop && !p->stop_ids.len;
    return (scored ? CAKE_SEQ_SCORED : 0) | (sure ? CAKE_SEQ_SURE : 0);
}

static bool lacks_scores(const cake_sequence *lead)
{
    return cake_sequence_scores_prompt(lead) && lead->n_prompt_scored < lead->n_prompt;
}

/* Admits a choice with its own copy of the prompt. */
static void admit_alone(cake_engine *r, cake_sequence *s, bool again)
{
    cake_sequence *lead = r->lead;
    int flags = schedule_flags(lead, lacks_scores(lead)) | (again ? CAKE_SEQ_AGAIN : 0);
    s->admitted = s->latest = lead->admitted;
    occupy_slot(
        r, cake_schedule_resume(r->schedule, s->n_prompt, (int)s->ids.len, s->max_len, lead->chain, flags),
        s);
}

/* Admits the next choice that an earlier run began. */
static bool admit_resumed(cake_engine *r)
{
    cake_sequence *lead = r->lead, *s = lead->choice[lead->n_choice - lead->n_resumed];
    if (!s->over && !cake_schedule_can_admit(r->schedule))
        return false;
    lead->n_resumed--;
    if (!s->over)
        admit_alone(r, s, lead->n_choice - lead->n_resumed > 1);
    return true;
}

/* Admits the lead's prompt alone, so that its choices can fork from it. */
static bool admit_stem(cake_engine *r)
{
    cake_sequence *lead = r->lead;
    if (!cake_schedule_can_admit(r->schedule))
        return false;
    int flags = schedule_flags(lead, lacks_scores(lead)) | (lead->n_choice ? CAKE_SEQ_AGAIN : 0);
    r->stem =
        cake_schedule_admit(r->schedule, lead->n_prompt, lead->max_len, lead->chain, flags | CAKE_SEQ_STEM);
    r->seqs[r->stem] = lead;
    return true;
}

/* Begins one more choice of the lead. False: not now. */
static bool admit_choice(cake_engine *r)
{
    cake_sequence *lead = r->lead;
    bool stems = r->shape.n_lane * r->shape.lane_seqs > 1;
    if (lead->n_resumed && !lead->request.err)
        return admit_resumed(r);
    if (lead->n_choice == lead->request.params.n || lead->request.err) {
        if (r->stem >= 0 && cake_schedule_seq_in_flight(r->schedule, r->stem))
            return false;
        release_lead(r);
        return true;
    }
    if (r->stem >= 0) {
        int slot = r->stem_scored ? cake_schedule_fork(r->schedule, r->stem) : CAKE_FORK_LATER;
        if (slot == CAKE_FORK_NEVER)
            drop_stem(r);
        if (slot >= 0) {
            occupy_slot(r, slot, cake_sequence_branch(lead));
            cake_sample_row *row = cake_sampler_rows(r->sampler);
            *row = (cake_sample_row){.sequence = r->seqs[slot],
                                     .finite = true,
                                     .score = r->stem_score,
                                     .what = CAKE_SAMPLE_SAMPLE};
            cake_sampler_run(r->sampler, 1, 1);
            cake_engine_token(r, slot, row);
        }
        return slot != CAKE_FORK_LATER;
    }
    if (stems && !r->stem_scored)
        return admit_stem(r);
    if (!cake_schedule_can_admit(r->schedule))
        return false;
    bool again = stems || lead->n_choice > 0;
    admit_alone(r, cake_sequence_branch(lead), again);
    return true;
}

/* Finishes a request without generating: its answers are empty. */
static void finish_empty(cake_engine *r, cake_sequence *lead)
{
    while (lead->request.params.n > 1 && lead->n_choice < lead->request.params.n)
        cake_sequence_branch(lead);
    finish_request(r, lead);
}

void cake_engine_retire_prompt(cake_engine *r, int slot)
{
    cake_sequence *s = r->seqs[slot];
    cake_schedule_retire(r->schedule, slot);
    r->seqs[slot] = NULL;
    finish_empty(r, s);
}

static void admit_request(cake_engine *r, cake_sequence *s)
{
    bool wants_tokens = s->max_len > s->n_prompt, scored = cake_sequence_scores_prompt(s);
    int flags = schedule_flags(s, scored);
    s->admitted = s->latest = cake_clock_now();
    if (s->over) {
        finish_request(r, s);
    } else if (!wants_tokens && (!scored || s->n_prompt == 1)) {
        finish_empty(r, s);
    } else if (wants_tokens && s->request.params.n > 1) {
        r->lead = s;
        r->stem_scored = false;
    } else {
        occupy_slot(
            r, cake_schedule_resume(r->schedule, s->n_prompt, (int)s->ids.len, s->max_len, s->chain, flags),
            s);
    }
}

void cake_engine_read(cake_engine *r, int n)
{
    double start = cake_clock_now();
    int before = r->queue.n;
    r->err = cake_request_queue_read(&r->queue, n);
    if (r->queue.n > before || r->err) /* most calls read nothing: these are not traced */
        r->stats.read_s += cake_engine_trace(r, CAKE_SPAN_READ, start, 0);
}

void cake_engine_admit(cake_engine *r)
{
    while (!r->err) {
        if (r->lead) {
            if (!admit_choice(r))
                return;
            continue;
        }
        if (!cake_schedule_can_admit(r->schedule))
            return;
        if (!r->queue.n)
            cake_engine_read(r, 1);
        cake_sequence *sequence = cake_request_queue_pop(&r->queue);
        if (sequence)
            admit_request(r, sequence);
        else if (r->queue.empty)
            return;
    }
}

void cake_engine_overflow(cake_engine *r, int slot)
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
        cake_engine_retire(r, slot);
}
