/* SPDX-License-Identifier: Apache-2.0
 *
 * In: sequences. Out: bytes; and the reverse.
 * Invariant: rank 0's copy of a sequence gets the same tokens and scores as the replica's in the same order,
 * so its text ends at the same place.
 */
#include "dispatch/protocol.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* The fixed part of a request; its lists follow. */
typedef struct header {
    int64_t ticket;
    uint64_t seed;
    cake_params params;        /* its pointers are invalid */
    int32_t n_prompt, n_begun; /* n_begun: tokens of the answer from an earlier run */
    uint64_t n_stop_id, n_bias;
    int32_t task; /* cake_task */
    int32_t n_part;
    cake_constraint_source constraint; /* its pointer is invalid */
    int32_t n_choice; /* that were begun; after the lists, for each: number of tokens, tokens, scores */
} header;

void cake_dispatch_msg_take(cake_dispatch_msg *message, void *into, size_t bytes)
{
    CAKE_ASSERT((size_t)(message->end - message->at) >= bytes);
    if (bytes)
        memcpy(into, message->at, bytes);
    message->at += bytes;
}

void cake_dispatch_msg_skip(cake_dispatch_msg *message, size_t bytes)
{
    CAKE_ASSERT((size_t)(message->end - message->at) >= bytes);
    message->at += bytes;
}

/* An owned list of n elements; NULL if n is 0. */
static void *take_list(cake_dispatch_msg *message, uint64_t n, size_t each)
{
    CAKE_ASSERT(n <= (size_t)(message->end - message->at) / each);
    void *list = n ? cake_alloc(n, each) : NULL;
    cake_dispatch_msg_take(message, list, n * each);
    return list;
}

void cake_dispatch_msg_add_request(cake_buf *message, int64_t ticket, const cake_sequence *lead)
{
    const cake_params *p = &lead->request.params;
    size_t scores = (size_t)cake_sequence_generated(lead) * (size_t)(1 + lead->n_top);
    header h = {.ticket = ticket,
                .seed = lead->key.seed,
                .params = *p,
                .n_prompt = lead->n_prompt,
                .n_begun = cake_sequence_generated(lead),
                .n_stop_id = p->stop_ids.len,
                .n_bias = p->n_bias,
                .task = (int32_t)lead->request.task,
                .n_part = lead->request.n_part,
                .constraint = lead->request.constraint,
                .n_choice = lead->n_choice};
    cake_buf_add(message, &h, sizeof h);
    cake_buf_add(message, lead->ids.id, lead->ids.len * sizeof *lead->ids.id);
    cake_buf_add(message, lead->logprobs, scores * sizeof *lead->logprobs);
    cake_buf_add(message, p->stop_ids.id, p->stop_ids.len * sizeof *p->stop_ids.id);
    cake_buf_add(message, p->bias, p->n_bias * sizeof *p->bias);
    cake_buf_add(message, lead->request.parts, (size_t)h.n_part * sizeof *lead->request.parts);
    cake_buf_add(message, h.constraint.text, h.constraint.len);
    for (int i = 0; i < p->n_stop; i++) {
        uint64_t len = strlen(p->stop[i]);
        cake_buf_add(message, &len, sizeof len);
        cake_buf_add(message, p->stop[i], len);
    }
    for (int i = 0; i < lead->n_choice; i++) {
        const cake_sequence *s = lead->choice[i];
        uint64_t n = (uint64_t)cake_sequence_generated(s);
        cake_buf_add(message, &n, sizeof n);
        cake_buf_add(message, s->ids.id + s->n_prompt, n * sizeof *s->ids.id);
        cake_buf_add(message, s->logprobs, n * (size_t)(1 + s->n_top) * sizeof *s->logprobs);
    }
}

/* Reads n tokens of an earlier run. */
static void take_begun(cake_dispatch_msg *message, uint64_t n, cake_sequence *s, const int32_t *eos,
                       int n_eos)
{
    size_t width = (size_t)(1 + s->n_top);
    int32_t *ids = take_list(message, n, sizeof *ids);
    cake_token_logprob *logprobs = take_list(message, n * width, sizeof *logprobs);
    cake_sequence_resume(s, ids, n, logprobs, eos, n_eos);
    free(ids);
    free(logprobs);
}

cake_sequence *cake_dispatch_msg_take_request(cake_dispatch_msg *message, int context,
                                              const cake_tokenizer *tokenizer, const int32_t *eos, int n_eos)
{
    header h;
    uint64_t n_token;
    cake_dispatch_msg_take(message, &h, sizeof h);
    cake_request request = {.order = h.ticket, .task = (cake_task)h.task, .params = h.params};
    cake_params *p = &request.params;
    CAKE_ASSERT(h.n_prompt > 0 && h.n_begun >= 0 && p->n_stop >= 0 && p->n_stop <= CAKE_MAX_STOP);
    cake_ids ids = {.id = take_list(message, (uint64_t)h.n_prompt, sizeof(int32_t)),
                    .len = (size_t)h.n_prompt};
    ids.cap = ids.len;
    size_t n = (size_t)h.n_begun, width = p->logprobs == CAKE_UNSET ? 0 : 1 + (size_t)p->logprobs;
    int32_t *begun = take_list(message, n, sizeof *begun);
    cake_token_logprob *logprobs = take_list(message, n * width, sizeof *logprobs);
    p->stop_ids = (cake_ids){.id = take_list(message, h.n_stop_id, sizeof(int32_t)), .len = h.n_stop_id};
    p->stop_ids.cap = p->stop_ids.len;
    p->bias = take_list(message, h.n_bias, sizeof *p->bias);
    CAKE_ASSERT(h.n_part >= 0);
    request.parts = take_list(message, (uint64_t)h.n_part, sizeof *request.parts);
    request.n_part = h.n_part;
    request.constraint = h.constraint;
    CAKE_ASSERT(h.constraint.len <= (size_t)(message->end - message->at));
    request.constraint.text = h.constraint.kind ? cake_copy(message->at, h.constraint.len) : NULL;
    message->at += h.constraint.len;
    request.constraint_field = "constraint";
    for (int i = 0; i < p->n_stop; i++) {
        uint64_t len;
        cake_dispatch_msg_take(message, &len, sizeof len);
        CAKE_ASSERT(len <= (size_t)(message->end - message->at));
        p->stop[i] = cake_copy(message->at, len);
        message->at += len;
    }
    cake_sequence *lead = cake_sequence_open(&request, &ids, context, 0, p->n_stop ? tokenizer : NULL);
    lead->key.seed = h.seed;
    cake_sequence_resume(lead, begun, n, logprobs, eos, n_eos);
    free(begun);
    free(logprobs);
    CAKE_ASSERT(h.n_choice >= 0 && h.n_choice <= cake_sequence_n_branch(lead));
    cake_sequence_resume_choices(lead, h.n_choice);
    for (int i = 0; i < lead->n_choice; i++) {
        cake_dispatch_msg_take(message, &n_token, sizeof n_token);
        take_begun(message, n_token, lead->choice[i], eos, n_eos);
    }
    return lead;
}

void cake_dispatch_msg_add_token(cake_buf *message, const cake_sequence *s, double waited)
{
    size_t n = s->n_top >= 0 ? 1 + (size_t)s->n_top : 0, last = (size_t)cake_sequence_generated(s) - 1;
    cake_event event = {.kind = CAKE_EVENT_TOKEN,
                        .ticket = s->lead->request.order,
                        .at = s == s->lead ? -1 : (int32_t)s->key.choice,
                        .id = s->ids.id[s->ids.len - 1],
                        .n = (int32_t)n,
                        .waited = (float)waited};
    cake_buf_add(message, &event, sizeof event);
    cake_buf_add(message, s->logprobs ? s->logprobs + last * n : NULL, n * sizeof *s->logprobs);
}

/* The scores of the prompt's tokens, if there are any. s: a lead, or a part, and then id is its number. */
static void add_scores(cake_buf *message, const cake_sequence *s, int32_t id)
{
    const int from = cake_sequence_score_from(s);
    const size_t width = 1 + (size_t)s->n_top;
    if (!from || s->n_prompt_logprobs <= from)
        return;
    cake_event event = {.kind = CAKE_EVENT_SCORES,
                        .ticket = s->lead->request.order,
                        .at = from,
                        .id = id,
                        .n = s->n_prompt_logprobs - from};
    cake_buf_add(message, &event, sizeof event);
    cake_buf_add(message, s->prompt_logprobs + (size_t)from * width,
                 (size_t)event.n * width * sizeof *s->prompt_logprobs);
    if (s->prompt_rank)
        cake_buf_add(message, s->prompt_rank + from, (size_t)event.n * sizeof *s->prompt_rank);
}

static void add_embedding(cake_buf *message, const cake_sequence *s, int32_t id)
{
    cake_event event = {
        .kind = CAKE_EVENT_EMBEDDING, .ticket = s->lead->request.order, .id = id, .n = s->n_embedding};
    if (!s->embedding)
        return;
    cake_buf_add(message, &event, sizeof event);
    cake_buf_add(message, s->embedding, (size_t)s->n_embedding * sizeof *s->embedding);
}

void cake_dispatch_msg_add_done(cake_buf *message, const cake_sequence *lead)
{
    const cake_request *r = &lead->request;
    cake_event event = {
        .kind = CAKE_EVENT_DONE, .ticket = r->order, .at = lead->n_choice, .n = r->err != CAKE_OK};
    if (!r->err)
        add_scores(message, lead, 0);
    for (int i = 0; i < lead->n_choice && r->parts && !r->err; i++) {
        add_scores(message, lead->choice[i], i);
        add_embedding(message, lead->choice[i], i);
    }
    cake_buf_add(message, &event, sizeof event);
    if (event.n)
        cake_buf_add(message, &r->fault, sizeof r->fault);
}

/* Choice or part `at` of the lead; begins those up to it. */
static cake_sequence *get_choice(cake_sequence *lead, int at)
{
    const int n = cake_sequence_n_branch(lead);
    CAKE_ASSERT(at >= -1 && at < (n ? n : 1) && (at >= 0) == (n > 0));
    while (lead->n_choice <= at)
        cake_sequence_branch(lead);
    return at < 0 ? lead : lead->choice[at];
}

static void apply_token(cake_dispatch_msg *message, const cake_event *event, const int32_t *eos, int n_eos,
                        cake_sequence *lead, cake_sequence **token)
{
    cake_token_logprob logprobs[1 + CAKE_MAX_TOP];
    CAKE_ASSERT(event->n == (lead->n_top >= 0 ? 1 + lead->n_top : 0));
    cake_dispatch_msg_take(message, logprobs, (size_t)event->n * sizeof *logprobs);
    if (lead->request.err) /* rank 0 could not decode its text; the replica does not know */
        return;
    *token = get_choice(lead, event->at);
    CAKE_ASSERT((int)(*token)->ids.len < (*token)->max_len);
    cake_sequence_push(*token, event->id, logprobs, eos, n_eos);
}

static void apply_scores(cake_dispatch_msg *message, const cake_event *event, cake_sequence *lead)
{
    cake_token_logprob logprobs[1 + CAKE_MAX_TOP];
    cake_sequence *s = lead->request.parts ? get_choice(lead, event->id) : lead;
    CAKE_ASSERT(event->at >= 1 && event->at == cake_sequence_score_from(s) &&
                event->n <= s->n_prompt - event->at);
    const size_t width = 1 + (size_t)lead->n_top;
    cake_dispatch_msg ranks = *message; /* they follow all scores */
    cake_dispatch_msg_skip(&ranks, (size_t)event->n * width * sizeof *logprobs);
    for (int i = 0; i < event->n; i++) {
        int32_t rank = 0;
        cake_dispatch_msg_take(message, logprobs, width * sizeof *logprobs);
        if (s->prompt_rank)
            cake_dispatch_msg_take(&ranks, &rank, sizeof rank);
        cake_sequence_score_prompt(s, event->at + i, logprobs, rank);
    }
    *message = ranks;
}

static void apply_embedding(cake_dispatch_msg *message, const cake_event *event, cake_sequence *lead)
{
    cake_sequence *s = get_choice(lead, event->id);
    CAKE_ASSERT(event->n >= 1 && !s->embedding);
    s->embedding = take_list(message, (uint64_t)event->n, sizeof *s->embedding);
    s->n_embedding = event->n;
}

bool cake_dispatch_msg_apply(cake_dispatch_msg *message, const cake_event *event, const int32_t *eos,
                             int n_eos, cake_sequence *lead, cake_sequence **token)
{
    cake_request *r = &lead->request;
    *token = NULL;
    if (event->kind == CAKE_EVENT_TOKEN) {
        apply_token(message, event, eos, n_eos, lead, token);
        return false;
    }
    if (event->kind == CAKE_EVENT_SCORES) {
        apply_scores(message, event, lead);
        return false;
    }
    if (event->kind == CAKE_EVENT_EMBEDDING) {
        apply_embedding(message, event, lead);
        return false;
    }
    cake_fault fault;
    CAKE_ASSERT(event->kind == CAKE_EVENT_DONE && event->at >= 0 &&
                event->at <= cake_sequence_n_branch(lead));
    cake_dispatch_msg_take(message, &fault, event->n ? sizeof fault : 0);
    if (event->n && !r->err) {
        r->fault = fault;
        r->err = CAKE_ERR_REQUEST;
    }
    if (event->at > 0 && !r->err)
        get_choice(lead, event->at - 1);
    return true;
}
