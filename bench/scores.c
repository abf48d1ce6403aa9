/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations on scores after the head, with a vocabulary of 151,936: checks, logprobs, sampling. One thread,
 * as in a run; results are fractions of the time to read the scores once.
 * Invariant: an operation that differs from its definition, given here in double, is not timed.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "bench/peak_rates.h"
#include "logits/logits.h"
#include "sample/penalties.h"
#include "sample/sample.h"

enum { VOCAB = 151936, ROWS = 64, TOP = 20, SEEN = 512 };

typedef struct job {
    float *score; /* [n, VOCAB] */
    int n;
    cake_params params;
    cake_penalties *past;
    void *scratch;
    int32_t id[ROWS * TOP];
    double total[ROWS];
} job;

static float *row(const job *j, int i)
{
    return j->score + (size_t)i * VOCAB;
}

static void run_total(const cake_exec *exec, void *arg)
{
    job *j = arg;
    (void)exec;
    for (int i = 0; i < j->n; i++)
        j->total[i] = cake_logits_total(row(j, i), VOCAB);
}

static void run_top(const cake_exec *exec, void *arg)
{
    job *j = arg;
    (void)exec;
    for (int i = 0; i < j->n; i++)
        cake_logits_top(row(j, i), VOCAB, TOP, j->id + (size_t)i * TOP);
}

static void run_sample(const cake_exec *exec, void *arg)
{
    job *j = arg;
    (void)exec;
    for (int i = 0; i < j->n; i++) {
        cake_key key = {17, 0, (uint32_t)i};
        cake_penalties_apply(j->past, row(j, i));
        j->id[i] = cake_sample(row(j, i), VOCAB, &j->params, &key, j->scratch);
        cake_penalties_undo(j->past, row(j, i));
    }
}

/* ---- the definitions */

typedef struct ranked {
    double score;
    int32_t id;
} ranked;

static int by_score(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static ranked *rank_all(const float *score)
{
    ranked *all = cake_alloc(VOCAB, sizeof *all);
    for (int32_t i = 0; i < VOCAB; i++)
        all[i] = (ranked){(double)score[i], i};
    qsort(all, VOCAB, sizeof *all, by_score);
    return all;
}

static double weight(const job *j, const ranked *all, int i)
{
    return exp((all[i].score - all[0].score) / j->params.temperature);
}

/* all: sorted by rank with top_k or top_p, else by id except that all[0] is the highest. */
static int32_t drawn(const job *j, const float *score, const cake_key *key)
{
    ranked *all = rank_all(score);
    bool by_rank = j->params.top_k > 0 || j->params.top_p < 1;
    int n = j->params.top_k > 0 ? (int)j->params.top_k : VOCAB, kept = 0;
    double sum = 0, all_kept = 0, walked = 0, best = all[0].score;
    int32_t id = all[0].id;
    for (int i = 0; i < n; i++)
        sum += weight(j, all, i);
    while (kept < n && all_kept < j->params.top_p * sum)
        all_kept += weight(j, all, kept++);
    double target = cake_key_uniform(key) * all_kept;
    bool found = j->params.temperature == 0;
    for (int i = 0; i < kept && !found; i++) {
        double s = by_rank ? all[i].score : (double)score[i];
        walked += exp((s - best) / j->params.temperature);
        id = by_rank ? all[i].id : i;
        found = walked > target;
    }
    free(all);
    return id;
}

static bool right_sample(job *j)
{
    cake_key key = {17, 0, 0};
    cake_penalties_apply(j->past, j->score);
    int32_t id = drawn(j, j->score, &key);
    cake_penalties_undo(j->past, j->score);
    return j->id[0] == id;
}

static bool right_total(job *j)
{
    double sum = 0;
    for (int i = 0; i < VOCAB; i++)
        sum += exp((double)j->score[i]);
    return fabs(j->total[0] - log(sum)) < 1e-6;
}

static bool right_top(job *j)
{
    ranked *all = rank_all(j->score);
    bool same = true;
    for (int i = 0; i < TOP; i++)
        same = same && all[i].id == j->id[i];
    free(all);
    return same;
}

static const struct {
    void (*run)(const cake_exec *exec, void *arg);
    bool (*right)(job *j);
    double temperature, top_p, repetition_penalty;
    int top_k;
} kinds[] = {
    {run_total, right_total, 0, 1, 1, 0},        {run_top, right_top, 0, 1, 1, 0},
    {run_sample, right_sample, 0, 1, 1, 0},      {run_sample, right_sample, 0, 1, 1.25, 0},
    {run_sample, right_sample, 1, 1, 1, 0},      {run_sample, right_sample, 0.7, 1, 1, 20},
    {run_sample, right_sample, 0.7, 1, 1, 1000}, {run_sample, right_sample, 0.7, 0.9, 1, 0},
};

static void set_params(const cake_case *self, job *j)
{
    j->params = cake_params_base();
    j->params.temperature = kinds[self->kind].temperature;
    j->params.top_k = kinds[self->kind].top_k;
    j->params.top_p = kinds[self->kind].top_p;
    j->params.repetition_penalty = kinds[self->kind].repetition_penalty;
    int32_t seen[SEEN];
    for (int i = 0; i < SEEN; i++)
        seen[i] = (int32_t)((uint64_t)i * 7919 % VOCAB);
    j->past = cake_penalties_open(&j->params, seen, SEEN, NULL, 0);
}

static cake_err run_scores(cake_bench *bench, const cake_case *self)
{
    job j = {.n = bench->smoke ? 1 : ROWS};
    cake_arena arena;
    size_t bytes = cake_arena_round((size_t)j.n * VOCAB * sizeof(float));
    cake_err err = cake_arena_open(&arena, "bench", bytes + cake_arena_round(cake_sample_scratch(VOCAB)));
    if (err)
        return err;
    j.score = cake_arena_take(&arena, bytes);
    j.scratch = cake_arena_take(&arena, cake_sample_scratch(VOCAB));
    uint64_t random = 1;
    for (int64_t i = 0; i < (int64_t)j.n * VOCAB; i++) { /* close to a normal distribution of deviation 2 */
        float sum = 0;
        for (int k = 0; k < 4; k++) {
            random = random * 6364136223846793005 + 1442695040888963407; /* Knuth, MMIX */
            sum += (float)(int32_t)(random >> 32) * 0x1p-31f;
        }
        j.score[i] = sum * 1.7f;
    }
    set_params(self, &j);
    kinds[self->kind].run(NULL, &j);
    if (kinds[self->kind].right(&j))
        peak_report_bytes(bench, self->name, 1, PEAK_READ, (double)j.n * VOCAB * sizeof(float),
                          cake_bench_time(bench, 1, kinds[self->kind].run, &j));
    else
        err = cake_fail("bench", "%s does not agree with its definition; it is not timed", self->name);
    cake_penalties_close(j.past);
    cake_params_free(&j.params);
    cake_arena_close(&arena);
    return err;
}

const cake_case cake_cases_scores[] = {
    {"scores.total", "log of the sum of their exponentials", run_scores, 0},
    {"scores.top-20", "the 20 best, for logprobs", run_scores, 1},
    {"scores.arg-max", "a token at temperature 0", run_scores, 2},
    {"scores.penalty", "the same with a repetition penalty over 512 tokens", run_scores, 3},
    {"scores.temperature", "a token drawn from all", run_scores, 4},
    {"scores.top-k", "a token drawn from the 20 best", run_scores, 5},
    {"scores.top-k-1000", "a token drawn from the 1,000 best", run_scores, 6},
    {"scores.top-p", "a token drawn from the best that reach 0.9", run_scores, 7},
    {NULL, NULL, NULL, 0},
};
