/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a wave back from the last slice. Out: scores of the rows that end a sequence. Rank 0 calls.
 */
#include "logits/logits.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/scores.h"

struct cake_logits {
    const cake_model *model;
    const cake_kernels *kernels;
    int max_row, n_thread, n;
    cake_arena arena;
    float *x;        /* [max_row, dim] */
    void *input;     /* the same, packed for the head */
    float *score;    /* [max_row, n_vocab] */
    cake_best *best; /* [n_thread, max_row] */
    const bool *wanted;
};

static size_t x_bytes(const cake_config *c, int max_row)
{
    return cake_arena_round((size_t)max_row * (size_t)c->dim * sizeof(float));
}

static size_t score_bytes(const cake_config *c, int max_row)
{
    return cake_arena_round((size_t)max_row * (size_t)c->n_vocab * sizeof(float));
}

/* Whatever dtype the head is of: that is known when it is loaded. */
static size_t input_bytes(const cake_config *c, const cake_kernels *kernels, int max_row)
{
    size_t most = 0;
    for (int dtype = 0; dtype < CAKE_N_KEPT; dtype++) {
        size_t bytes = kernels->input_bytes((cake_dtype)dtype, c->dim, max_row);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static size_t best_bytes(int max_row, int n_thread)
{
    return cake_arena_round((size_t)max_row * (size_t)n_thread * sizeof(cake_best));
}

size_t cake_logits_bytes(const cake_config *config, const cake_kernels *kernels, int max_row, int n_thread)
{
    return x_bytes(config, max_row) + input_bytes(config, kernels, max_row) + score_bytes(config, max_row) +
           best_bytes(max_row, n_thread);
}

cake_err cake_logits_open(const cake_model *model, const cake_kernels *kernels, int max_row, int n_thread,
                          cake_logits **out)
{
    const cake_config *c = cake_model_config(model);
    cake_arena arena;
    cake_err err = cake_arena_open(&arena, "scores", cake_logits_bytes(c, kernels, max_row, n_thread));
    if (err)
        return err;
    cake_logits *l = cake_alloc(1, sizeof *l);
    *l = (cake_logits){
        .model = model, .kernels = kernels, .max_row = max_row, .n_thread = n_thread, .arena = arena};
    l->x = cake_arena_take(&l->arena, x_bytes(c, max_row));
    l->input = cake_arena_take(&l->arena, input_bytes(c, kernels, max_row));
    l->score = cake_arena_take(&l->arena, score_bytes(c, max_row));
    l->best = cake_arena_take(&l->arena, best_bytes(max_row, n_thread));
    *out = l;
    return CAKE_OK;
}

void cake_logits_close(cake_logits *logits)
{
    if (!logits)
        return;
    cake_arena_close(&logits->arena);
    free(logits);
}

static void forward(const cake_exec *exec, void *arg)
{
    cake_logits *l = arg;
    const cake_config *c = cake_model_config(l->model);
    const cake_weight *head = cake_model_head(l->model);
    l->kernels->rmsnorm(exec, l->x, l->x, cake_model_final_norm(l->model), NULL, l->n, c->dim, c->norm_eps);
    l->kernels->input_pack(exec, l->input, l->x, NULL, head->dtype, c->dim, l->n);
    cake_exec_barrier(exec);
    l->kernels->scores(exec, l->score, l->best + (size_t)exec->rank * (size_t)l->max_row, l->input, head,
                       l->wanted, c->logit_cap, l->n);
}

float *cake_logits_forward(cake_logits *logits, int n_thread, cake_wave *wave, const int32_t *row, int n,
                           const bool *wanted, cake_best *best)
{
    CAKE_ASSERT(n <= logits->max_row && n_thread <= logits->n_thread);
    const float *body = cake_wave_body(wave);
    size_t dim = (size_t)wave->dim;
    for (int i = 0; i < n; i++)
        memcpy(logits->x + (size_t)i * dim, body + (size_t)row[i] * dim, dim * sizeof(float));
    for (int member = 0; member < logits->n_thread; member++) /* the team may be smaller */
        for (int i = 0; i < n; i++)
            cake_best_clear(&logits->best[(size_t)member * (size_t)logits->max_row + (size_t)i],
                            best[i].most);
    logits->n = n;
    logits->wanted = wanted;
    cake_exec_run(n_thread, forward, logits);
    for (int member = 0; member < logits->n_thread; member++)
        for (int i = 0; i < n; i++)
            cake_best_join(&best[i], &logits->best[(size_t)member * (size_t)logits->max_row + (size_t)i]);
    return logits->score;
}

cake_effort cake_logits_work(const cake_logits *logits, int n)
{
    const cake_weight *head = cake_model_head(logits->model);
    return (cake_effort){2.0 * n * head->n_out * head->n_in,
                         (double)logits->kernels->weight_bytes(head->dtype, head->n_out, head->n_in)};
}

double cake_logits_total(const float *score, int n_vocab)
{
    cake_law law = cake_law_of(cake_scores_top(score, n_vocab), 1);
    return law.top + log(cake_scores_sum(&law, score, n_vocab, NULL));
}

void cake_logits_top(const float *score, int n_vocab, int n, int32_t *ids)
{
    enum { GROUP = 64 };
    int held = 0;
    for (int from = 0; from < n_vocab; from += GROUP) {
        int to = n_vocab - from < GROUP ? n_vocab : from + GROUP;
        if (held == n && (n == 0 || cake_scores_top(score + from, to - from) <= score[ids[n - 1]]))
            continue;
        for (int i = from; i < to; i++) {
            if (held == n && score[i] <= score[ids[n - 1]])
                continue;
            int at = held < n ? held++ : n - 1;
            for (; at > 0 && score[i] > score[ids[at - 1]]; at--)
                ids[at] = ids[at - 1];
            ids[at] = i;
        }
    }
}
