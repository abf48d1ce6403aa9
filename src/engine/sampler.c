/* SPDX-License-Identifier: Apache-2.0
 *
 * In: scores of rows. Out: tokens, log probabilities.
 * Invariant: one thread does all the work of a row.
 */
#include "engine/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "kernels/kernels.h"
#include "logits/logits.h"

#define MAX_THREADS 8 /* each needs scratch for a sorted vocabulary, and memory bandwidth feeds no more */

struct cake_sampler {
    int n_vocab, n;
    int n_worker; /* threads that sample; the others of the team, whose size never changes, idle */
    cake_arena arena;
    cake_sample_row *rows;      /* [max_row] */
    void *scratch[MAX_THREADS]; /* [n_worker] */
    float *kept[MAX_THREADS];   /* [n_worker, n_vocab] scores that a constraint allows, or takes away */
    uint64_t *bits;             /* [max_row, n_word] of masks */
    size_t n_word;
    bool best; /* of the present rows: see cake_sampler_constrain */
};

static int n_workers(int max_row, int n_thread)
{
    int n = n_thread < MAX_THREADS ? n_thread : MAX_THREADS;
    return n < max_row ? n : max_row;
}

static size_t rows_bytes(int max_row)
{
    return cake_arena_round((size_t)max_row * sizeof(cake_sample_row));
}

static size_t kept_bytes(int n_vocab)
{
    return cake_arena_round((size_t)n_vocab * sizeof(float));
}

static size_t bits_bytes(int n_vocab, int max_row)
{
    return cake_arena_round((size_t)max_row * ((size_t)n_vocab / 64 + 1) * sizeof(uint64_t));
}

size_t cake_sampler_bytes(int n_vocab, int max_row, int n_thread)
{
    return rows_bytes(max_row) + bits_bytes(n_vocab, max_row) +
           (size_t)n_workers(max_row, n_thread) *
               (cake_arena_round(cake_sample_scratch(n_vocab)) + kept_bytes(n_vocab));
}

cake_err cake_sampler_open(int n_vocab, int max_row, int n_thread, cake_sampler **out)
{
    cake_arena arena;
    cake_err err = cake_arena_open(&arena, "sampling", cake_sampler_bytes(n_vocab, max_row, n_thread));
    if (err)
        return err;
    cake_sampler *c = cake_alloc(1, sizeof *c);
    *c = (cake_sampler){.n_vocab = n_vocab, .n_worker = n_workers(max_row, n_thread), .arena = arena};
    c->rows = cake_arena_take(&c->arena, rows_bytes(max_row));
    c->bits = cake_arena_take(&c->arena, bits_bytes(n_vocab, max_row));
    c->n_word = (size_t)n_vocab / 64 + 1;
    for (int i = 0; i < c->n_worker; i++) {
        c->scratch[i] = cake_arena_take(&c->arena, cake_arena_round(cake_sample_scratch(n_vocab)));
        c->kept[i] = cake_arena_take(&c->arena, kept_bytes(n_vocab));
    }
    *out = c;
    return CAKE_OK;
}

void cake_sampler_close(cake_sampler *sampler)
{
    if (!sampler)
        return;
    cake_arena_close(&sampler->arena);
    free(sampler);
}

cake_sample_row *cake_sampler_rows(cake_sampler *sampler)
{
    return sampler->rows;
}

/* Logprobs of the token and of the best alternatives, before penalties and temperature. */
static void score_token(cake_sample_row *c, int n_vocab, int n_top)
{
    int32_t best[CAKE_MAX_TOP];
    double total = cake_logits_total(c->score, n_vocab);
    cake_logits_top(c->score, n_vocab, n_top, best);
    c->logprobs[0] = (cake_token_logprob){c->id, (float)((double)c->score[c->id] - total)};
    for (int i = 0; i < n_top; i++)
        c->logprobs[1 + i] = (cake_token_logprob){best[i], (float)((double)c->score[best[i]] - total)};
}

static int32_t rank_of(const float *score, int n_vocab, int32_t id)
{
    int32_t rank = 1;
    for (int i = 0; i < n_vocab; i++)
        rank += score[i] > score[id];
    return rank;
}

/* The only token that a constraint allows; -1: there are several, or none. */
static int32_t forced(const cake_sample_row *row)
{
    return row->mask.allowed && row->mask.n == 1 ? row->mask.id[0] : -1;
}

int cake_sample_row_topk(const cake_sample_row *row, int n_vocab)
{
    const cake_sequence *s = row->sequence;
    if (!s || row->what == CAKE_SAMPLE_CHECK)
        return 1;
    if (row->what == CAKE_SAMPLE_SCORE || s->n_top >= 0)
        return 0;
    if (s->constraint && (row->stuck || forced(row) >= 0))
        return 1;
    if (s->penalties || (s->constraint && !row->allowed))
        return 0;
    return cake_sample_needs(&s->lead->request.params, n_vocab);
}

static void constrain_row(cake_sampler *c, int i)
{
    cake_sample_row *row = &c->rows[i];
    const cake_sequence *s = row->sequence;
    if (!s || row->skip || row->what != CAKE_SAMPLE_SAMPLE || !s->constraint)
        return;
    row->mask = cake_constraint_mask(s->constraint);
    row->stuck = cake_constraint_stuck(s->constraint);
    if (!c->best || s->penalties || s->n_top >= 0 || row->stuck ||
        !cake_sample_needs(&s->lead->request.params, c->n_vocab))
        return;
    uint64_t *bits = c->bits + (size_t)i * c->n_word;
    memset(bits, row->mask.allowed ? 0 : 0xFF, c->n_word * sizeof *bits);
    for (int32_t k = 0; k < row->mask.n; k++)
        bits[row->mask.id[k] / 64] ^= (uint64_t)1 << row->mask.id[k] % 64;
    row->allowed = bits;
}

static void constrain(const cake_exec *exec, void *arg)
{
    cake_sampler *c = arg;
    for (int i = exec->rank; i < c->n; i += exec->size)
        constrain_row(c, i);
}

void cake_sampler_constrain(cake_sampler *c, int n_thread, int n, bool best)
{
    bool any = false;
    for (int i = 0; i < n && !any; i++)
        any = c->rows[i].sequence && !c->rows[i].skip && c->rows[i].sequence->constraint;
    c->n = n;
    c->best = best;
    if (any)
        cake_exec_run(n > 1 ? n_thread : 1, constrain, c);
}

/* Draws from what the constraint allows: from a list of these scores, or, where most are allowed, from all
 * without the others. */
static int32_t sample_allowed(cake_sample_row *c, int n_vocab, float *kept, void *scratch)
{
    const cake_sequence *s = c->sequence;
    const cake_params *params = &s->lead->request.params;
    const cake_mask mask = c->mask;
    if (mask.allowed) {
        for (int32_t i = 0; i < mask.n; i++)
            kept[i] = c->score[mask.id[i]];
        return mask.id[cake_sample_listed(kept, mask.n, n_vocab, params, &s->key, scratch)];
    }
    for (int32_t i = 0; i < mask.n; i++) {
        kept[i] = c->score[mask.id[i]];
        c->score[mask.id[i]] = -INFINITY;
    }
    const int32_t id = cake_sample(c->score, n_vocab, params, &s->key, scratch);
    for (int32_t i = 0; i < mask.n; i++)
        c->score[mask.id[i]] = kept[i];
    return id;
}

static void sample_row(cake_sample_row *c, int n_vocab, float *kept, void *scratch)
{
    cake_sequence *s = c->sequence;
    if (!s || c->skip || !c->finite || c->what == CAKE_SAMPLE_CHECK || c->stuck)
        return;
    if (c->what == CAKE_SAMPLE_SAMPLE) {
        const cake_params *params = &s->lead->request.params;
        s->key.pos = (uint32_t)s->ids.len;
        c->id = forced(c);
        if (c->id < 0 && !c->score)
            c->id = cake_sample_best(c->best, params, &s->key);
        if (c->id < 0) {
            cake_penalties_apply(s->penalties, c->score);
            c->id = s->constraint ? sample_allowed(c, n_vocab, kept, scratch)
                                  : cake_sample(c->score, n_vocab, params, &s->key, scratch);
            cake_penalties_undo(s->penalties, c->score);
        }
    }
    if (s->n_top >= 0)
        score_token(c, n_vocab, s->n_top);
    if (c->what == CAKE_SAMPLE_SCORE && s->lead->request.params.prompt_logprobs != CAKE_UNSET)
        c->rank = rank_of(c->score, n_vocab, c->id);
}

static void worker(const cake_exec *exec, void *arg)
{
    cake_sampler *c = arg;
    int workers = exec->size < c->n_worker ? exec->size : c->n_worker;
    for (int i = exec->rank; exec->rank < workers && i < c->n; i += workers)
        sample_row(&c->rows[i], c->n_vocab, c->kept[exec->rank], c->scratch[exec->rank]);
}

void cake_sampler_run(cake_sampler *sampler, int n_thread, int n)
{
    sampler->n = n;
    cake_exec_run(n > 1 ? n_thread : 1, worker, sampler);
}
