/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention in the shapes of Qwen3-0.6B (16 query and 8 KV heads of 128) and of the global layers of
 * Gemma 4 26B-A4B (16 and 2 heads of 512), and latent attention in those of DeepSeek V3 (128 heads, 512 + 64
 * elements) and GLM-4.7-Flash (20 heads). The cache is BF16, or what --kv-dtype says. Each result is a
 * fraction of the roofline: the time of the operations (of BF16 pairs, if the table has them) or of the bytes
 * read, shared pages once. Small caches are used in turn, in enough copies to exceed the processor's caches.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "bench/peak_rates.h"
#include "options/options.h"
#include "planner/rank.h"

#define BYTES ((size_t)256 << 20) /* of all copies of the cache */

enum { CHUNK = 512 };

/* Heads of q, and of K and V; elements of a key; of a latent, where there is no V. */
typedef struct sizes {
    int heads, kv_heads, dim, latent;
} sizes;

static const sizes plain = {16, 8, 128, 0}, deepseek = {128, 1, 576, 512}, flash = {20, 1, 576, 512},
                   gemma = {16, 2, 512, 0};

typedef struct job {
    const cake_kernels *op;
    const sizes *of;
    cake_kv kv;   /* of the first copy */
    size_t cache; /* bytes of K, and of V, in a copy; all K come before all V */
    int n_copy, copy;
    cake_row *rows;
    float *q, *out; /* [n_row, heads, dim]; of latents, their part of q comes first */
    int n_row;
    double seen; /* positions that all rows see */
    double read; /* distinct ones */
} job;

/* Sequences with a common prefix of `shared` positions and `own` further ones; one sequence: a prompt. */
typedef struct shape {
    int n_seq, shared, own;
    const sizes *sizes;
} shape;

static const shape shapes[] = {
    {1, 0, 512, &plain},    {1, 0, 2048, &plain},  {1, 0, 8192, &plain},    {8, 0, 512, &plain},
    {64, 0, 160, &plain},   {16, 0, 4096, &plain}, {8, 2048, 32, &plain},   {32, 2048, 32, &plain},
    {32, 4096, 32, &plain}, {64, 128, 32, &plain}, {1, 0, 2048, &deepseek}, {16, 0, 4096, &deepseek},
    {1, 0, 2048, &flash},   {16, 0, 4096, &flash}, {1, 0, 2048, &gemma},    {16, 0, 4096, &gemma}};

static void attend(const cake_exec *exec, void *arg)
{
    job *j = arg;
    cake_kv kv = j->kv;
    kv.k = (char *)kv.k + (size_t)j->copy * j->cache;
    kv.v = (char *)kv.v + (size_t)j->copy * j->cache;
    const sizes *of = j->of;
    const cake_latent_query q = {j->q, j->q + (int64_t)j->n_row * of->heads * of->latent, of->heads};
    const float scale = 1 / sqrtf((float)of->dim);
    if (of->latent)
        j->op->latent_attend(exec, j->out, &q, &kv, j->rows, j->n_row, scale);
    else
        j->op->attend(exec, j->out, j->q, &kv, j->rows, j->n_row, of->heads, scale, 0);
    cake_exec_barrier(exec);
    if (exec->rank == 0)
        j->copy = (j->copy + 1) % j->n_copy;
}

/* The last CHUNK rows of one prompt, or the last row of each of several sequences. */
static void fill_rows(job *j, shape of)
{
    bool prompt = of.n_seq == 1;
    int length = of.shared + of.own;
    j->n_row = !prompt ? of.n_seq : length < CHUNK ? length : CHUNK;
    for (int i = 0; i < j->n_row; i++) {
        int pos = prompt ? length - j->n_row + i : length - 1;
        j->rows[i] = (cake_row){prompt ? 0 : i, pos, prompt ? CAKE_ROW_PROMPT : CAKE_ROW_GENERATED, 0, 0, 0};
        j->seen += pos + 1;
    }
    j->read = of.shared + (double)of.n_seq * of.own;
}

static void report_rows(cake_bench *bench, const char *name, job *j, int threads)
{
    bool pairs = cake_kv_pair(&j->kv) == 2 && peak_rate(bench, PEAK_BF16, threads) > 0;
    const sizes *of = j->of;
    double flops = 2.0 * of->heads * (of->dim + (of->latent ? of->latent : of->dim)) * j->seen;
    double line = (double)cake_kv_line_bytes(j->kv.dtype, of->dim, of->latent);
    double bytes = (of->latent ? 1 : 2) * of->kv_heads * line * j->read;
    peak_report_roofline(bench, name, threads, pairs ? PEAK_BF16 : PEAK_F32, flops, bytes,
                         cake_bench_time(bench, threads, attend, j));
}

/* Scatters the pages, as in a cache that has been in use for long. Returns their number. */
static int fill_table(int32_t *table, shape of, int stride)
{
    int common = of.shared / CAKE_PAGE, own = stride - common, n_page = common + of.n_seq * own;
    for (int s = 0; s < of.n_seq; s++)
        for (int i = 0; i < stride; i++)
            table[s * stride + i] = (int32_t)((int64_t)(i < common ? i : i + s * own) * 7919 % n_page);
    return n_page;
}

/* A copy of K, or V, of `parts` heads' parts of pages. Elements of int8 may be any; scales are 1 / 128. */
static void fill_half(const job *j, char *to, int64_t parts, int64_t stride)
{
    const int64_t line = cake_kv_line(j->kv.dtype, j->of->dim, j->of->latent), dim = j->of->dim;
    const size_t size = cake_dtype_bytes(j->kv.dtype);
    for (int64_t i = 0; i < parts * CAKE_PAGE * line; i++) {
        float value = (float)(i * stride % 2003 - 1001) * 0x1p-10f;
        bool scale = i % (CAKE_PAGE * line) >= CAKE_PAGE * dim;
        if (j->kv.dtype != CAKE_I8)
            cake_from_f32(to + (size_t)i * size, &value, j->kv.dtype, 1);
        else
            to[i] = scale ? (char)(i % 2 ? 0x3C : 0) : (char)(value * 127);
    }
    for (int i = 1; i < j->n_copy; i++)
        memcpy(to + (size_t)i * j->cache, to, j->cache);
}

/* self->kind: index of shapes. */
static cake_err run_attend(cake_bench *bench, const cake_case *self)
{
    shape of = shapes[self->kind];
    of.own = bench->smoke && of.own > 600 ? 600 : of.own;
    of.shared = bench->smoke && of.shared > 512 ? 512 : of.shared;
    int stride = (of.shared + of.own + CAKE_PAGE - 1) / CAKE_PAGE, n_row = of.n_seq > 1 ? of.n_seq : CHUNK;
    int32_t *table = cake_alloc((size_t)(of.n_seq * stride), sizeof *table);
    int n_page = fill_table(table, of, stride);
    cake_dtype dtype = cake_rank_kv_dtype(bench->options->kv_dtype, CAKE_BF16);
    int64_t page =
        (int64_t)of.sizes->kv_heads * CAKE_PAGE * cake_kv_line(dtype, of.sizes->dim, of.sizes->latent);
    job j = {
        .op = bench->kernels, .of = of.sizes, .cache = (size_t)(n_page * page) * cake_dtype_bytes(dtype)};
    const int64_t n_q = (int64_t)n_row * of.sizes->heads * of.sizes->dim;
    const size_t act = (size_t)n_q * sizeof(float);
    j.n_copy = of.n_seq == 1 || bench->smoke ? 1 : (int)(BYTES / (2 * j.cache)) + 1;
    size_t half = (size_t)j.n_copy * j.cache;
    cake_arena arena;
    cake_err err = cake_arena_open(&arena, "bench", 2 * half + 2 * act);
    if (!err) {
        j.kv = (cake_kv){.k = cake_arena_take(&arena, half),
                         .v = cake_arena_take(&arena, half),
                         .page_step = page,
                         .dtype = dtype,
                         .n_kv = of.sizes->kv_heads,
                         .head_dim = of.sizes->dim,
                         .n_value = of.sizes->latent,
                         .table = table,
                         .stride = stride};
        j.q = cake_arena_take(&arena, act);
        j.out = cake_arena_take(&arena, act);
        fill_half(&j, j.kv.k, (int64_t)n_page * of.sizes->kv_heads, 7919);
        fill_half(&j, j.kv.v, (int64_t)n_page * of.sizes->kv_heads, 104729);
        for (int64_t i = 0; i < n_q; i++)
            j.q[i] = (float)(i * 7907 % 2003 - 1001) * 0x1p-10f;
        j.rows = cake_alloc((size_t)n_row, sizeof *j.rows);
        fill_rows(&j, of);
        for (int threads = 1; threads; threads = cake_bench_next_threads(bench, threads))
            report_rows(bench, self->name, &j, threads);
        free(j.rows);
        cake_arena_close(&arena);
    }
    free(table);
    return err;
}

const cake_case cake_cases_attend[] = {
    {"attend.prompt-512", "512 rows of a prompt, from its beginning", run_attend, 0},
    {"attend.prompt-2048", "the last 512 rows of a prompt of 2,048", run_attend, 1},
    {"attend.prompt-8192", "the last 512 rows of a prompt of 8,192", run_attend, 2},
    {"attend.generated-8x512", "a row of 8 sequences of 512 positions", run_attend, 3},
    {"attend.generated-64x160", "a row of 64 sequences of 160 positions", run_attend, 4},
    {"attend.generated-16x4096", "a row of 16 sequences of 4,096 positions", run_attend, 5},
    {"attend.choices-8x2048", "a row of 8 choices of a prompt of 2,048", run_attend, 6},
    {"attend.choices-32x2048", "a row of 32 choices of a prompt of 2,048", run_attend, 7},
    {"attend.choices-32x4096", "a row of 32 choices of a prompt of 4,096", run_attend, 8},
    {"attend.choices-64x128", "a row of 64 choices of a prompt of 128", run_attend, 9},
    {"attend.latent-prompt-2048", "the last 512 rows of a prompt of 2,048, DeepSeek V3", run_attend, 10},
    {"attend.latent-16x4096", "a row of 16 sequences of 4,096 positions, DeepSeek V3", run_attend, 11},
    {"attend.latent-flash-prompt-2048", "the last 512 rows of a prompt of 2,048, GLM-4.7-Flash", run_attend,
     12},
    {"attend.latent-flash-16x4096", "a row of 16 sequences of 4,096 positions, GLM-4.7-Flash", run_attend,
     13},
    {"attend.wide-prompt-2048", "the last 512 rows of a prompt of 2,048, heads of 512", run_attend, 14},
    {"attend.wide-16x4096", "a row of 16 sequences of 4,096 positions, heads of 512", run_attend, 15},
    {NULL, NULL, NULL, 0},
};
