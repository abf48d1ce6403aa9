/* SPDX-License-Identifier: Apache-2.0
 *
 * In: ids. Out: changed scores. The engine keeps one for each sequence that needs it.
 * Invariant: the table finds every token of the list, and each is listed once.
 */
#include "sample/penalties.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/alloc.h"

typedef struct past_token {
    int32_t id;
    int32_t count; /* times generated */
    float bias;
    float score;      /* the score before apply */
    bool prompt, end; /* it occurs in the prompt; it ends an answer */
    bool later;       /* it may not be the first token of an answer */
} past_token;

struct cake_penalties {
    int64_t left; /* tokens to come before the answer may end */
    bool begun;   /* a first token was generated */
    float repetition, presence, frequency;
    past_token *token; /* [n] in the order of their first occurrence */
    uint32_t n, cap;
    uint32_t *table; /* [size] 1 + index in token, by open addressing; 0: free */
    uint32_t size;   /* a power of two, at least twice n */
};

static uint32_t *place_of(const cake_penalties *p, int32_t id)
{
    uint32_t at = (uint32_t)id * 0x9E3779B1u;
    for (at ^= at >> 15;; at++) {
        uint32_t *place = &p->table[at & (p->size - 1)];
        if (!*place || p->token[*place - 1].id == id)
            return place;
    }
}

static past_token *token_of(cake_penalties *p, int32_t id)
{
    if (2 * (p->n + 1) > p->size) {
        free(p->table);
        p->size = p->size ? 2 * p->size : 64;
        p->table = cake_alloc(p->size, sizeof *p->table);
        for (uint32_t i = 0; i < p->n; i++)
            *place_of(p, p->token[i].id) = i + 1;
    }
    uint32_t *place = place_of(p, id);
    if (!*place) {
        CAKE_RESERVE(p->token, p->n, p->cap);
        p->token[p->n++] = (past_token){.id = id};
        *place = p->n;
    }
    return &p->token[*place - 1];
}

static void add_bias(past_token *token, const cake_logit_bias *bias)
{
    if (bias->first)
        token->later = true;
    else
        token->bias = bias->bias;
}

cake_penalties *cake_penalties_open(const cake_params *params, const int32_t *prompt, int n_prompt,
                                    const int32_t *eos, int n_eos)
{
    bool counts = params->presence_penalty != 0 || params->frequency_penalty != 0;
    bool repeats = params->repetition_penalty != 1;
    if (!params->n_bias && !repeats && !counts && params->min_tokens == 0)
        return NULL;
    cake_penalties *p = cake_alloc(1, sizeof *p);
    *p = (cake_penalties){.left = params->min_tokens,
                          .repetition = (float)fmin(fmax(params->repetition_penalty, FLT_MIN), FLT_MAX),
                          .presence = (float)params->presence_penalty,
                          .frequency = (float)params->frequency_penalty};
    for (size_t i = 0; i < params->n_bias; i++)
        add_bias(token_of(p, params->bias[i].id), &params->bias[i]);
    for (int i = 0; repeats && i < n_prompt; i++)
        token_of(p, prompt[i])->prompt = true;
    for (int i = 0; p->left && i < n_eos; i++)
        token_of(p, eos[i])->end = true;
    for (size_t i = 0; p->left && i < params->stop_ids.len; i++)
        token_of(p, params->stop_ids.id[i])->end = true;
    return p;
}

void cake_penalties_close(cake_penalties *penalties)
{
    if (!penalties)
        return;
    free(penalties->token);
    free(penalties->table);
    free(penalties);
}

void cake_penalties_add(cake_penalties *penalties, int32_t id)
{
    if (!penalties)
        return;
    penalties->left -= penalties->left > 0;
    penalties->begun = true;
    if (penalties->repetition != 1 || penalties->presence != 0 || penalties->frequency != 0)
        token_of(penalties, id)->count++;
}

void cake_penalties_apply(cake_penalties *penalties, float *score)
{
    for (uint32_t i = 0; penalties && i < penalties->n; i++) {
        past_token *t = &penalties->token[i];
        float s = t->score = score[t->id];
        s += t->bias;
        if (t->prompt || t->count)
            s = s > 0 ? s / penalties->repetition : s * penalties->repetition;
        if (t->count)
            s -= (float)t->count * penalties->frequency + penalties->presence;
        s = fminf(fmaxf(s, -FLT_MAX), FLT_MAX);
        bool never = (t->end && penalties->left) || (t->later && !penalties->begun) || t->bias == -INFINITY;
        score[t->id] = never ? -INFINITY : s;
    }
}

void cake_penalties_undo(const cake_penalties *penalties, float *score)
{
    for (uint32_t i = 0; penalties && i < penalties->n; i++)
        score[penalties->token[i].id] = penalties->token[i].score;
}
