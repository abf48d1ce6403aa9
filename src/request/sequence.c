/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a request, then its tokens. Out: text, scores, and the end of the answer.
 * Invariant: begin ascends, and is exact when the answer is over.
 */
#include "request/sequence.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* A decoder error fails the request. */
static bool check_text(cake_sequence *s)
{
    cake_request *r = &s->lead->request;
    if (s->decoder && !r->err)
        r->err = cake_decoder_check(s->decoder, &r->fault);
    return r->err;
}

static const cake_params *params_of(const cake_sequence *s)
{
    return &s->lead->request.params;
}

int cake_sequence_score_from(const cake_sequence *s)
{
    const cake_params *p = params_of(s);
    const cake_part *parts = s->lead->request.parts;
    if (parts)
        return s == s->lead ? 0 : parts[s->key.choice].score_from;
    const bool all = p->echo == 1 || p->prompt_logprobs != CAKE_UNSET;
    return s->n_top < 0 ? 0 : p->score_from ? (int)p->score_from : all;
}

/* For tokens that do not decode to the original text: searches each token after the previous one. A token
 * that is not found (a special token, a normalized part) gets the position of the next one. */
static void find_begins(cake_sequence *lead, const char *text, size_t len)
{
    cake_buf own = {0};
    size_t at = 0;
    for (int i = 0; i < lead->n_prompt; i++) {
        lead->prompt_begin[i] = at;
        cake_buf_cut(&own, 0);
        cake_tokenizer_bytes(lead->tokenizer, lead->ids.id[i], &own);
        bool added_space = own.len && own.data[0] == ' ' && !at; /* added before the first word */
        if (own.len <= len - at && own.len && !memcmp(text + at, own.data, own.len))
            at += own.len;
        else if (added_space && own.len - 1 <= len - at && !memcmp(text + at, own.data + 1, own.len - 1))
            at += own.len - 1;
    }
    cake_buf_free(&own);
}

/* Feeds the prompt to the decoder, so that the answer continues its text. This also gives the text of a
 * prompt that came as ids. */
static void add_prompt(cake_sequence *s)
{
    cake_request *r = &s->lead->request;
    cake_buf text = {0};
    cake_buf_adds(&text, "");
    bool first = s == s->lead && cake_sequence_score_from(s);
    if (first)
        s->prompt_begin = cake_alloc((size_t)s->n_prompt, sizeof *s->prompt_begin);
    cake_decoder_trace(s->decoder, first ? s->prompt_begin : NULL);
    for (int i = 0; i < s->n_prompt; i++)
        cake_decoder_push(s->decoder, s->ids.id[i], &text);
    if (cake_sequence_generates(s))
        cake_decoder_settle(s->decoder, &text);
    else /* nothing follows */
        cake_decoder_end(s->decoder, &text);
    if (first && r->text && (r->text_len != text.len || memcmp(r->text, text.data, text.len) != 0))
        find_begins(s, r->text, r->text_len);
    if (!r->text) {
        r->text = text.data;
        r->text_len = text.len;
    } else {
        cake_buf_free(&text);
    }
    check_text(s);
}

/* The seed of a request's random numbers. Of several lines with one id (samples of one task) the first uses
 * the id alone, wherever it is in the file; later ones differ. */
static uint64_t seed_of(const cake_request *r, uint64_t job_seed)
{
    if (r->params.seed != CAKE_UNSET)
        return (uint64_t)r->params.seed;
    if (!r->id)
        return cake_key_of_index(job_seed, r->index);
    uint64_t seed = cake_key_of_id(job_seed, r->id, strlen(r->id));
    return r->again ? cake_key_of_index(seed, r->again) : seed;
}

static void open_scores(cake_sequence *s)
{
    s->prompt_logprobs = cake_alloc((size_t)s->n_prompt * (1 + (size_t)s->n_top), sizeof *s->prompt_logprobs);
    s->prompt_logprobs[0].id = s->ids.id[0]; /* the first token has no score */
    if (params_of(s)->prompt_logprobs != CAKE_UNSET)
        s->prompt_rank = cake_alloc((size_t)s->n_prompt, sizeof *s->prompt_rank);
    s->n_prompt_logprobs = cake_sequence_score_from(s);
}

cake_sequence *cake_sequence_open(cake_request *request, cake_ids *ids, int context, uint64_t job_seed,
                                  const cake_tokenizer *tokenizer)
{
    cake_sequence *s = cake_alloc(1, sizeof *s);
    s->lead = s;
    s->request = *request;
    s->ids = *ids;
    *request = (cake_request){0};
    *ids = (cake_ids){0};
    s->n_prompt = (int)s->ids.len;
    const cake_params *p = &s->request.params;
    int64_t max_len = (int64_t)s->n_prompt + (p->max_tokens == CAKE_UNSET ? context : p->max_tokens);
    s->max_len = max_len < context ? (int)max_len : context;
    const int64_t n_top = p->logprobs > p->prompt_logprobs ? p->logprobs : p->prompt_logprobs;
    s->n_top = n_top == CAKE_UNSET ? -1 : (int)n_top;
    s->finish = CAKE_FINISH_LENGTH;
    s->key.seed = seed_of(&s->request, job_seed);
    s->tokenizer = tokenizer;
    if (tokenizer)
        s->decoder = cake_decoder_open(tokenizer);
    if (tokenizer && p->echo == 1 && !s->request.err)
        add_prompt(s);
    if (!s->request.err && cake_sequence_score_from(s))
        open_scores(s);
    return s;
}

int cake_sequence_n_branch(const cake_sequence *lead)
{
    const int64_t n = lead->request.params.n;
    return lead->request.parts ? lead->request.n_part : n > 1 ? (int)n : 0;
}

cake_sequence *cake_sequence_branch(cake_sequence *lead)
{
    cake_sequence *s = cake_alloc(1, sizeof *s);
    const cake_part *part = lead->request.parts ? &lead->request.parts[lead->n_choice] : NULL;
    s->lead = lead;
    s->n_prompt = part ? part->n_token : lead->n_prompt;
    s->max_len = part ? s->n_prompt : lead->max_len;
    s->type_from = part ? part->type_from : 0;
    s->pool_from = part ? part->pool_from : 0;
    cake_ids_append(&s->ids, lead->ids.id + lead->part_at, (size_t)s->n_prompt);
    lead->part_at += part ? s->n_prompt : 0;
    s->n_top = lead->n_top;
    s->finish = lead->finish;
    s->key = lead->key;
    s->key.choice = (uint32_t)lead->n_choice;
    s->admitted = lead->admitted;
    s->tokenizer = lead->tokenizer;
    if (part && cake_sequence_score_from(s))
        open_scores(s);
    else if (!part && s->tokenizer)
        s->decoder = cake_decoder_open(s->tokenizer);
    if (s->tokenizer && params_of(s)->echo == 1)
        add_prompt(s);
    lead->choice = cake_grow(lead->choice, (size_t)lead->n_choice + 1, sizeof *lead->choice);
    lead->choice[lead->n_choice++] = s;
    return s;
}

void cake_sequence_close(cake_sequence *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n_choice; i++)
        cake_sequence_close(s->choice[i]);
    free(s->choice);
    free(s->chain);
    if (s == s->lead)
        cake_request_free(&s->request);
    cake_ids_free(&s->ids);
    cake_decoder_close(s->decoder);
    cake_penalties_close(s->penalties);
    cake_constraint_close(s->constraint);
    cake_grammar_close(s->grammar);
    cake_buf_free(&s->text);
    free(s->logprobs);
    free(s->begin);
    free(s->pooled);
    free(s->embedding);
    free(s->prompt_logprobs);
    free(s->prompt_rank);
    free(s->prompt_begin);
    free(s);
}

int cake_sequence_generated(const cake_sequence *s)
{
    return (int)s->ids.len - s->n_prompt;
}

bool cake_sequence_generates(const cake_sequence *s)
{
    return s->max_len > s->n_prompt;
}

int cake_sequence_n_computed(const cake_sequence *s)
{
    const bool last = cake_sequence_generates(s) || cake_tasks[s->lead->request.task].pools;
    return last ? s->n_prompt : s->n_prompt - 1;
}

static size_t longest_stop(const cake_params *p)
{
    size_t longest = 0;
    for (int i = 0; i < p->n_stop; i++)
        if (strlen(p->stop[i]) > longest)
            longest = strlen(p->stop[i]);
    return longest;
}

size_t cake_sequence_settled(const cake_sequence *s)
{
    size_t longest = longest_stop(params_of(s)), hold = longest ? longest - 1 : 0;
    return s->text.len > hold ? s->text.len - hold : 0;
}

/* Where the first stop string begins of those that end after byte `before` of the text; ties go to the one
 * that starts first. SIZE_MAX: there is none. */
static size_t find_stop(const cake_sequence *s, size_t before)
{
    const cake_params *p = params_of(s);
    size_t found = SIZE_MAX;
    for (int i = 0; i < p->n_stop; i++) {
        size_t len = strlen(p->stop[i]);
        size_t from = before > len - 1 ? before - (len - 1) : 0;
        const char *at = s->text.len - from >= len
                             ? memmem(s->text.data + from, s->text.len - from, p->stop[i], len)
                             : NULL;
        if (at && (size_t)(at - s->text.data) < found)
            found = (size_t)(at - s->text.data);
    }
    return found;
}

/* Cuts the text before a stop string. The decoder may hold it back: bytes of a token each (a newline of
 * SentencePiece's vocabularies) are a text only if those that follow do not change that. */
static bool cut_at_stop(cake_sequence *s, size_t before)
{
    const size_t shown = s->text.len;
    size_t found = shown > before ? find_stop(s, before) : SIZE_MAX;
    if (found == SIZE_MAX && params_of(s)->n_stop && s->decoder) {
        cake_decoder_peek(s->decoder, &s->text);
        found = s->text.len > shown ? find_stop(s, before) : SIZE_MAX;
        cake_buf_cut(&s->text, shown);
        if (found != SIZE_MAX)
            cake_decoder_end(s->decoder, &s->text);
    }
    if (found == SIZE_MAX)
        return false;
    cake_buf_cut(&s->text, found);
    return true;
}

static bool contains(const int32_t *ids, size_t n, int32_t id)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

/* Stores the scores of the latest token. */
static void keep_scores(cake_sequence *s, const cake_token_logprob *logprobs)
{
    size_t n = 1 + (size_t)s->n_top, i = (size_t)cake_sequence_generated(s) - 1;
    if (i == s->cap_logprobs) {
        s->cap_logprobs = s->cap_logprobs ? 2 * s->cap_logprobs : 16;
        s->logprobs = cake_grow(s->logprobs, s->cap_logprobs * n, sizeof *s->logprobs);
        s->begin = cake_grow(s->begin, s->cap_logprobs, sizeof *s->begin);
    }
    memcpy(s->logprobs + i * n, logprobs, n * sizeof *logprobs);
    if (s->decoder)
        cake_decoder_trace(s->decoder, s->begin);
}

bool cake_sequence_score_prompt(cake_sequence *s, int pos, const cake_token_logprob *logprobs, int32_t rank)
{
    cake_sequence *of = s->lead->request.parts ? s : s->lead;
    size_t n = 1 + (size_t)of->n_top;
    if (pos == of->n_prompt_logprobs) { /* else replayed */
        memcpy(of->prompt_logprobs + (size_t)pos * n, logprobs, n * sizeof *logprobs);
        if (of->prompt_rank)
            of->prompt_rank[pos] = rank;
        of->n_prompt_logprobs++;
    }
    return of->n_prompt_logprobs == of->n_prompt && !cake_sequence_generates(s);
}

bool cake_sequence_push(cake_sequence *s, int32_t id, const cake_token_logprob *logprobs, const int32_t *eos,
                        int n_eos)
{
    const cake_params *p = params_of(s);
    cake_ids_add(&s->ids, id);
    cake_penalties_add(s->penalties, id);
    if (s->constraint)
        cake_constraint_add(s->constraint, id);
    int generated = cake_sequence_generated(s);
    size_t before = s->text.len;
    /* a constraint lets the end come only where the answer is complete */
    const bool ends = p->ignore_eos != 1 || s->lead->request.constraint.kind;
    bool ended = (ends && contains(eos, (size_t)n_eos, id)) || contains(p->stop_ids.id, p->stop_ids.len, id);
    bool full = (int)s->ids.len >= s->max_len;
    if (s->n_top >= 0)
        keep_scores(s, logprobs);
    if (s->decoder)
        cake_decoder_push(s->decoder, ended ? -1 : id,
                          &s->text); /* the end token has a position, but no text */
    if (s->decoder && (ended || full))
        cake_decoder_end(s->decoder, &s->text);
    if (check_text(s))
        return true;
    bool stopped = !ended && generated > p->min_tokens && cut_at_stop(s, before);
    s->finish = ended || stopped ? CAKE_FINISH_STOP : CAKE_FINISH_LENGTH;
    return s->over = ended || stopped || full;
}

bool cake_sequence_is_resumable(const cake_sequence *s)
{
    return (s != s->lead || params_of(s)->n == 1) && !s->lead->request.err;
}

static bool is_valid(const cake_sequence *lead, const cake_inflight *r, int n_vocab)
{
    size_t width = lead->n_top >= 0 ? 1 + (size_t)lead->n_top : 0;
    bool right = !lead->request.err && r->choice < params_of(lead)->n && (size_t)r->width == width &&
                 r->ids.len <= (size_t)(lead->max_len - lead->n_prompt);
    for (size_t i = 0; right && i < r->ids.len; i++)
        right = r->ids.id[i] >= 0 && r->ids.id[i] < n_vocab;
    for (size_t i = 0; right && i < r->ids.len * width; i++)
        right = r->logprobs[i].id >= 0 && r->logprobs[i].id < n_vocab;
    return right;
}

void cake_sequence_resume_choices(cake_sequence *lead, int n)
{
    while (lead->n_choice < n) {
        cake_sequence_branch(lead);
        lead->n_resumed++;
    }
}

void cake_sequence_resume(cake_sequence *s, const int32_t *ids, size_t n_id,
                          const cake_token_logprob *logprobs, const int32_t *eos, int n_eos)
{
    for (size_t i = 0; !s->over && !s->lead->request.err && i < n_id; i++)
        cake_sequence_push(s, ids[i], s->n_top >= 0 ? logprobs + i * (1 + (size_t)s->n_top) : NULL, eos,
                           n_eos);
    s->lead->n_done += s != s->lead && s->over;
}

static void forget_choices(cake_sequence *lead)
{
    for (int i = 0; i < lead->n_choice; i++)
        cake_sequence_close(lead->choice[i]);
    lead->n_choice = lead->n_done = lead->n_resumed = 0;
}

/* Whether the answer, or every one of several, is finished. */
static bool is_finished(cake_sequence *lead, const cake_inflight *r, const int32_t *eos, int n_eos)
{
    if (params_of(lead)->n > 1)
        return lead->n_done == params_of(lead)->n;
    cake_sequence *trial = cake_sequence_branch(lead); /* a lead's tokens cannot be removed again */
    cake_sequence_resume(trial, r->ids.id, r->ids.len, r->logprobs, eos, n_eos);
    bool over = trial->over;
    forget_choices(lead);
    return over;
}

bool cake_sequence_restore(cake_sequence *lead, const cake_inflight *r, int n, int n_vocab,
                           const int32_t *eos, int n_eos)
{
    bool several = params_of(lead)->n > 1, scores = cake_sequence_score_from(lead);
    for (int i = 0; i < n; i++)
        if (!is_valid(lead, &r[i], n_vocab))
            return false;
    if (!several && scores && is_finished(lead, r, eos, n_eos))
        return false;
    for (int i = 0; i < n; i++) {
        if (several)
            cake_sequence_resume_choices(lead, r[i].choice + 1);
        cake_sequence_resume(several ? lead->choice[r[i].choice] : lead, r[i].ids.id, r[i].ids.len,
                             r[i].logprobs, eos, n_eos);
    }
    if (!several || !scores || !is_finished(lead, r, eos, n_eos))
        return true;
    forget_choices(lead);
    return false;
}
