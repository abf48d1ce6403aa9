/* SPDX-License-Identifier: Apache-2.0
 *
 * The gated delta rule in the shape of Qwen3.5-0.8B (16 key and value heads of 128, a convolution of 4): 512
 * rows of a prompt, as a fraction of the peak of operations; generated rows of 64 sequences, as a fraction of
 * the bandwidth for the states that they read and write.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "bench/peak_rates.h"

enum { HEADS = 16, DIM = 128, WIDTH = 4, CHANNELS = 3 * HEADS * DIM, PROMPT = 512, SEQS = 64 };

typedef struct job {
    const cake_kernels *op;
    cake_deltanet delta;
    cake_row *rows;
    float *x, *a, *b, *out; /* [n, CHANNELS] [n, HEADS] x2 [n, HEADS, DIM] */
    int n;
} job;

static void conv(const cake_exec *exec, void *arg)
{
    job *j = arg;
    j->op->delta_conv(exec, j->x, &j->delta, j->rows, j->n);
    cake_exec_barrier(exec);
}

static void rule(const cake_exec *exec, void *arg)
{
    job *j = arg;
    j->op->delta_rule(exec, j->out, j->x, j->a, j->b, &j->delta, j->rows, j->n);
    cake_exec_barrier(exec);
}

enum { RULE = 1, GENERATED = 2 };

static float *take(cake_arena *arena, size_t n, int seed, float scale)
{
    float *all = cake_arena_take(arena, n * sizeof *all);
    for (size_t i = 0; i < n; i++)
        all[i] = (float)((int)((i * 7919 + (size_t)seed) % 2003) - 1001) * 0x1p-10f * scale;
    return all;
}

/* Rows of one prompt from its beginning, or one of each of n sequences. */
static cake_err open_job(const cake_kernels *op, bool generated, int n, job *j, cake_arena *arena)
{
    int n_slot = generated ? n : 1;
    *j = (job){.op = op, .n = n};
    j->delta =
        (cake_deltanet){.n_key = HEADS, .n_value = HEADS, .key_dim = DIM, .value_dim = DIM, .width = WIDTH};
    size_t rows = (size_t)n, state = (size_t)cake_delta_state_size(&j->delta);
    size_t floats = (size_t)n_slot * state + (size_t)CHANNELS * WIDTH + 2 * (size_t)HEADS +
                    rows * (CHANNELS + 2 * HEADS + HEADS * DIM);
    cake_err err = cake_arena_open(arena, "bench", (floats + 64) * 2 * sizeof(float));
    if (err)
        return err;
    j->delta.state = take(arena, (size_t)n_slot * state, 1, 0.5f);
    j->delta.step = (int64_t)state;
    j->delta.conv = take(arena, (size_t)CHANNELS * WIDTH, 2, 1);
    j->delta.a_log = take(arena, HEADS, 3, 1);
    j->delta.dt_bias = take(arena, HEADS, 4, 1);
    j->x = take(arena, rows * CHANNELS, 5, 2);
    j->a = take(arena, rows * HEADS, 6, 1);
    j->b = take(arena, rows * HEADS, 7, 1);
    j->out = take(arena, rows * HEADS * DIM, 8, 0);
    j->rows = cake_alloc(rows, sizeof *j->rows);
    for (int i = 0; i < n; i++)
        j->rows[i] = generated ? (cake_row){i, 200, CAKE_ROW_GENERATED, 201, 0, 0}
                               : (cake_row){0, i, CAKE_ROW_PROMPT, n, 0, 0};
    return CAKE_OK;
}

static void close_job(job *j, cake_arena *arena)
{
    free(j->rows);
    cake_arena_close(arena);
}

/* Prompts are computed in blocks, with another order of sums than row by row: errors relative to the
 * largest. */
static bool close_to(const float *a, const float *b, size_t n)
{
    float most = 0;
    for (size_t i = 0; i < n; i++)
        most = fabsf(b[i]) > most ? fabsf(b[i]) : most;
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(a[i] - b[i]) <= 1e-4f * most))
            return false;
    return true;
}

static cake_err check(cake_bench *bench, const cake_case *self, int threads)
{
    enum { N = 80 }; /* more than a block */
    job mine, oracle;
    cake_arena at[2];
    memset(at, 0, sizeof at);
    bool generated = self->kind & GENERATED, whole = self->kind & RULE;
    cake_err err = open_job(bench->kernels, generated, N, &mine, &at[0]);
    cake_err other = open_job(&cake_kernels_ref, generated, N, &oracle, &at[1]);
    err = err ? err : other;
    if (!err) {
        cake_exec_run(threads, whole ? rule : conv, &mine);
        cake_exec_run(1, whole ? rule : conv, &oracle);
        if (!close_to(whole ? mine.out : mine.x, whole ? oracle.out : oracle.x,
                      (size_t)N * (whole ? HEADS * DIM : CHANNELS)))
            err = cake_fail("bench", "%s: %s does not agree with plain C; it is not timed", self->name,
                            bench->kernels->name);
    }
    close_job(&mine, &at[0]);
    close_job(&oracle, &at[1]);
    return err;
}

static void report(cake_bench *bench, const cake_case *self, job *j, int threads)
{
    bool generated = self->kind & GENERATED, whole = self->kind & RULE;
    double seconds = cake_bench_time(bench, threads, whole ? rule : conv, j), n = j->n;
    double state = (double)cake_delta_rule_size(&j->delta), past = (WIDTH - 1) * (double)CHANNELS;
    if (whole && !generated) /* k S, k^T v and q S: three multiply-adds an element of the state */
        peak_report_flops(bench, self->name, threads, PEAK_F32, n * 6 * state, seconds);
    else if (whole)
        peak_report_bytes(bench, self->name, threads, PEAK_COPY,
                          n * sizeof(float) * (2 * state + CHANNELS + HEADS * DIM), seconds);
    else
        peak_report_bytes(bench, self->name, threads, PEAK_COPY,
                          n * sizeof(float) * (2.0 * CHANNELS + (generated ? 2 * past : 0)), seconds);
}

static cake_err run_delta(cake_bench *bench, const cake_case *self)
{
    bool generated = self->kind & GENERATED;
    int n = generated ? SEQS : PROMPT;
    job j;
    cake_arena arena = {0};
    cake_err err = open_job(bench->kernels, generated, bench->smoke ? n / 4 : n, &j, &arena);
    for (int threads = 1; threads && !err; threads = cake_bench_next_threads(bench, threads)) {
        err = check(bench, self, threads);
        if (!err)
            report(bench, self, &j, threads);
    }
    close_job(&j, &arena);
    return err;
}

const cake_case cake_cases_delta[] = {
    {"delta.conv-512", "convolution of 512 rows of a prompt", run_delta, 0},
    {"delta.conv-generated", "convolution of a row of 64 sequences", run_delta, GENERATED},
    {"delta.rule-512", "delta rule over 512 rows of a prompt", run_delta, RULE},
    {"delta.rule-generated", "delta rule, a row of 64 sequences", run_delta, RULE | GENERATED},
    {NULL, NULL, NULL, 0},
};
