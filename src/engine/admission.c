/* SPDX-License-Identifier: Apache-2.0
 *
 * In: sequences from the queue, sampled tokens. Out: finished requests, to the io.
 * Invariant: slot s of the schedule is sequence seqs[s], from admission to retirement; a request of several
 * choices goes back to the io when its last choice has ended and no further one will begin.
 */
#include "base/clock.h"
#include "engine/internal.h"

void cake_engine_begin(cake_engine *e, cake_sequence *lead)
{
    e->stats.begun += !lead->begun;
    e->stats.begun_tokens += lead->begun ? 0 : lead->n_prompt;
    lead->begun = true;
}

/* Hands a finished request back; the first error stops all further work. */
static void finish_request(cake_engine *e, cake_sequence *lead)
{
    double start = cake_clock_now();
    cake_engine_begin(e, lead);
    cake_request_queue_forget(&e->queue, lead);
    cake_err err = CAKE_OK;
    if (e->err && e->err != CAKE_STOPPED)
        cake_sequence_close(lead);
    else
        err = e->io.done(e->io.self, lead);
    e->err = err ? err : e->err;
    e->stats.write_s += cake_trace_since(e->trace, CAKE_SPAN_RECORD, start, 0);
}

void cake_engine_retire(cake_engine *e, int slot)
{
    cake_sequence *lead = e->seqs[slot]->lead;
    if (e->speculation && cake_sequence_generated(e->seqs[slot]))
        cake_speculation_end(e->speculation, &e->seqs[slot]->ids, e->seqs[slot]->n_prompt);
    bool several = e->seqs[slot] != lead;
    cake_schedule_retire(e->schedule, slot);
    e->seqs[slot] = NULL;
    lead->n_done += several;
    if (lead != e->lead && lead->n_done == lead->n_choice)
        finish_request(e, lead);
}

/* Frees the stem's slot: all choices have begun, or its pages leave too few for them. */
static void drop_stem(cake_engine *e)
{
    if (e->stem < 0)
        return;
    cake_schedule_retire(e->schedule, e->stem);
    e->seqs[e->stem] = NULL;
    e->stem = -1;
}

/* No further choice of the lead will begin. */
static void release_lead(cake_engine *e)
{
    cake_sequence *lead = e->lead;
    drop_stem(e);
    e->lead = NULL;
    for (; lead->n_resumed; lead->n_resumed--) /* it has failed: these are not resumed */
        lead->n_done += !lead->choice[lead->n_choice - lead->n_resumed]->over;
    if (lead->n_done == lead->n_choice)
        finish_request(e, lead);
}

/* Lets only such answers come as the request wants. */
static void constrain(const cake_engine *e, cake_sequence *s)
{
    const cake_params *p = &s->lead->request.params;
    cake_ids ends = {0};
    if (!s->lead->grammar)
        return;
    cake_ids_append(&ends, e->config->eos, (size_t)e->config->n_eos);
    cake_ids_append(&ends, p->stop_ids.id, p->stop_ids.len);
    s->constraint = cake_constraint_open(cake_grammar_share(s->lead->grammar), s->lead->vocabulary, ends.id,
                                         (int)ends.len, p->echo != 1);
    for (size_t i = (size_t)s->n_prompt; i < s->ids.len; i++) /* tokens of an earlier run */
        cake_constraint_add(s->constraint, s->ids.id[i]);
    cake_ids_free(&ends);
}

static void occupy_slot(cake_engine *e, int slot, cake_sequence *s)
{
    e->seqs[slot] = s;
    if (e->speculation)
        cake_speculation_begin(e->speculation, slot);
    constrain(e, s);
    s->penalties = cake_penalties_open(&s->lead->request.params, s->ids.id, s->n_prompt, e->config->eos,
                                       e->config->n_eos);
    for (size_t i = (size_t)s->n_prompt; i < s->ids.len; i++) /* tokens of an earlier run */
        cake_penalties_add(s->penalties, s->ids.id[i]);
}

void cake_engine_stuck(cake_sequence *s, const cake_sample_row *row)
{
    cake_request *request = &s->lead->request;
    const int n = cake_sequence_generated(s);
    request->err =
        request->params.n > 1 /* which choice fails first depends on the waves */
            ? cake_fault_set(&request->fault, NULL, "one of %lld choices: %s", (long long)request->params.n,
                             row->stuck)
            : cake_fault_set(&request->fault, NULL, "after %d token%s: %s", n, cake_plural(n), row->stuck);
}

void cake_engine_token(cake_engine *e, int slot, const cake_sample_row *row)
{
    cake_sequence *s = e->seqs[slot];
    double now = cake_clock_now(),
           waited = now - (s->ids.len == (size_t)s->n_prompt ? s->admitted : s->latest);
    bool finished = cake_sequence_push(s, row->id, row->logprobs, e->config->eos, e->config->n_eos);
    s->latest = now;
    e->io.token(e->io.self, s, waited);
    if (finished)
        cake_engine_retire(e, slot);
    else
        cake_schedule_token(e->schedule, slot);
}

static int schedule_flags(const cake_sequence *lead, bool scores_prompt)
{
    const cake_params *p = &lead->request.params;
    bool sure = p->ignore_eos == 1 && !p->n_stop && !p->stop_ids.len;
    return (scores_prompt ? CAKE_SLOT_SCORE_PROMPT : 0) | (sure ? CAKE_SLOT_FIXED_LENGTH : 0);
}

static bool lacks_scores(const cake_sequence *lead)
{
    return cake_sequence_score_from(lead) && lead->n_prompt_logprobs < lead->n_prompt;
}

static void limit_scores(cake_engine *e, int slot, const cake_sequence *s, int flags)
{
    const int from = cake_sequence_score_from(s);
    if (flags & CAKE_SLOT_SCORE_PROMPT)
        cake_schedule_score_from(e->schedule, slot, from ? from : 1);
}

/* Admits a sequence with its prompt. */
static void admit_prompt(cake_engine *e, cake_sequence *s, const int32_t *chain, int flags)
{
    const int n_computed = cake_sequence_n_computed(s), left_out = s->n_prompt - n_computed;
    int slot = cake_schedule_resume(e->schedule, n_computed, (int)s->ids.len - left_out,
                                    s->max_len - left_out, chain, flags);
    limit_scores(e, slot, s, flags);
    occupy_slot(e, slot, s);
}

/* Admits a choice with its own copy of the prompt. */
static void admit_alone(cake_engine *e, cake_sequence *s, bool again)
{
    cake_sequence *lead = e->lead;
    s->admitted = s->latest = lead->admitted;
    admit_prompt(e, s, lead->chain,
                 schedule_flags(lead, lacks_scores(lead)) | (again ? CAKE_SLOT_READMITTED : 0));
}

/* Admits the next part of the lead. */
static void admit_part(cake_engine *e)
{
    cake_sequence *s = cake_sequence_branch(e->lead);
    s->admitted = s->latest = e->lead->admitted;
    admit_prompt(e, s, NULL,
                 cake_tasks[e->lead->request.task].pools
                     ? cake_engine_pool_flags(e)
                     : schedule_flags(e->lead, cake_sequence_score_from(s) > 0));
}

/* Admits the next choice that an earlier run began. */
static bool admit_resumed(cake_engine *e)
{
    cake_sequence *lead = e->lead, *s = lead->choice[lead->n_choice - lead->n_resumed];
    if (!s->over && !cake_schedule_can_admit(e->schedule))
        return false;
    lead->n_resumed--;
    if (!s->over)
        admit_alone(e, s, lead->n_choice - lead->n_resumed > 1);
    return true;
}

/* Admits the lead's prompt alone, so that its choices can fork from it. */
static bool admit_stem(cake_engine *e)
{
    cake_sequence *lead = e->lead;
    if (!cake_schedule_can_admit(e->schedule))
        return false;
    int flags = schedule_flags(lead, lacks_scores(lead)) | (lead->n_choice ? CAKE_SLOT_READMITTED : 0);
    e->stem =
        cake_schedule_admit(e->schedule, lead->n_prompt, lead->max_len, lead->chain, flags | CAKE_SLOT_STEM);
    limit_scores(e, e->stem, lead, flags);
    e->seqs[e->stem] = lead;
    return true;
}

/* Begins one more choice of the lead. False: not now. */
static bool admit_choice(cake_engine *e)
{
    cake_sequence *lead = e->lead;
    bool stems = e->shape.n_lane * e->shape.lane_seqs > 1;
    if (lead->n_resumed && !lead->request.err)
        return admit_resumed(e);
    if (lead->n_choice == cake_sequence_n_branch(lead) || lead->request.err) {
        if (e->stem >= 0 && cake_schedule_seq_in_flight(e->schedule, e->stem))
            return false;
        release_lead(e);
        return true;
    }
    if (e->stem >= 0) {
        int slot = e->stem_scored ? cake_schedule_fork(e->schedule, e->stem) : CAKE_FORK_LATER;
        if (slot == CAKE_FORK_NEVER)
            drop_stem(e);
        if (slot >= 0) {
            occupy_slot(e, slot, cake_sequence_branch(lead));
            cake_sample_row *row = cake_sampler_rows(e->sampler);
            *row = (cake_sample_row){.sequence = e->seqs[slot],
                                     .finite = true,
                                     .score = e->stem_score,
                                     .what = CAKE_SAMPLE_SAMPLE};
            cake_sampler_constrain(e->sampler, 1, 1, false);
            cake_sampler_run(e->sampler, 1, 1);
            if (row->stuck) {
                cake_engine_stuck(e->seqs[slot], row);
                cake_engine_retire(e, slot);
            } else {
                cake_engine_token(e, slot, row);
            }
        }
        return slot != CAKE_FORK_LATER;
    }
    if (!lead->request.parts && stems && !e->stem_scored)
        return admit_stem(e);
    if (!cake_schedule_can_admit(e->schedule))
        return false;
    if (lead->request.parts) {
        admit_part(e);
        return true;
    }
    bool again = stems || lead->n_choice > 0;
    admit_alone(e, cake_sequence_branch(lead), again);
    return true;
}

/* Finishes a request without generating: its answers are empty. */
static void finish_empty(cake_engine *e, cake_sequence *lead)
{
    while (lead->n_choice < cake_sequence_n_branch(lead))
        cake_sequence_branch(lead);
    finish_request(e, lead);
}

void cake_engine_retire_prompt(cake_engine *e, int slot)
{
    cake_sequence *s = e->seqs[slot];
    if (s != s->lead) {
        cake_engine_retire(e, slot);
        return;
    }
    cake_schedule_retire(e->schedule, slot);
    e->seqs[slot] = NULL;
    finish_empty(e, s);
}

static void admit_request(cake_engine *e, cake_sequence *s)
{
    const bool generates = cake_sequence_generates(s), scores_prompt = cake_sequence_score_from(s);
    s->admitted = s->latest = cake_clock_now();
    if (s->over) {
        finish_request(e, s);
    } else if (s->request.parts || (generates && s->request.params.n > 1)) {
        e->lead = s;
        e->stem_scored = false;
    } else if (!generates && (!scores_prompt || s->n_prompt == 1)) {
        finish_empty(e, s);
    } else {
        admit_prompt(e, s, s->chain, schedule_flags(s, scores_prompt));
    }
}

void cake_engine_read(cake_engine *e, int n)
{
    double start = cake_clock_now();
    int before = e->queue.n;
    e->err = cake_request_queue_read(&e->queue, n);
    if (e->queue.n > before || e->err) /* most calls read nothing: these are not traced */
        e->stats.read_s += cake_trace_since(e->trace, CAKE_SPAN_READ, start, 0);
}

void cake_engine_admit(cake_engine *e)
{
    while (!e->err) {
        if (e->lead) {
            if (!admit_choice(e))
                return;
            continue;
        }
        if (!cake_schedule_can_admit(e->schedule))
            return;
        if (!e->queue.n)
            cake_engine_read(e, 1);
        cake_sequence *sequence = cake_request_queue_pop(&e->queue);
        if (sequence)
            admit_request(e, sequence);
        else if (e->queue.empty)
            return;
    }
}

void cake_engine_overflow(cake_engine *e, int slot)
{
    cake_request *request = &e->seqs[slot]->lead->request;
    request->err = cake_fault_set(
        &request->fault, NULL,
        "a sequence of %zu tokens alone is more than the KV memory holds (%d pages of %d tokens); "
        "try again with more --kv-memory or more ranks",
        e->seqs[slot]->ids.len, e->shape.n_page[0], CAKE_PAGE);
    request->fault.status = 500;
    if (slot == e->stem)
        release_lead(e);
    else
        cake_engine_retire(e, slot);
}
