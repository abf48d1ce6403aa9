/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention in the shape of Qwen3-0.6B (16 query and 8 KV heads of 128, a cache in BF16). Each result is a
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

#define BYTES ((size_t)256 << 20) /* of all copies of the cache */

enum { HEADS = 16, KV_HEADS = 8, DIM = 128, CHUNK = 512 };

typedef struct job {
    const cake_kernels *op;
    cake_kv kv;   /* of the first copy */
    size_t cache; /* bytes of K, and of V, in a copy; all K come before all V */
    int n_copy, copy;
    cake_row *rows;
    float *q, *out; /* [n_tok, HEADS, DIM] */
    int n_tok;
    double seen; /* positions that all rows see */
    double read; /* distinct ones */
} job;

/* Sequences with a common prefix of `shared` positions and `own` further ones; one sequence: a prompt. */
typedef struct shape {
    int n_seq, shared, own;
} shape;

static const shape shapes[] = {{1, 0, 512},   {1, 0, 2048},  {1, 0, 8192},   {8, 0, 512},    {64, 0, 160},
                               {16, 0, 4096}, {8, 2048, 32}, {32, 2048, 32}, {32, 4096, 32}, {64, 128, 32}};

static void attend(const cake_exec *exec, void *arg)
{
    job *j = arg;
    cake_kv kv = j->kv;
    kv.k = (char *)kv.k + (size_t)j->copy * j->cache;
    kv.v = (char *)kv.v + (size_t)j->copy * j->cache;
    j->op->attend(exec, j->out, j->q, &kv, j->rows, j->n_tok, HEADS, 1 / sqrtf(DIM), 0);
    cake_exec_barrier(exec);
    if (exec->rank == 0)
        j->copy = (j->copy + 1) % j->n_copy;
}

/* The last CHUNK rows of one prompt, or the last row of each of several sequences. */
static void fill_rows(job *j, shape of)
{
    bool prompt = of.n_seq == 1;
    int length = of.shared + of.own;
    j->n_tok = !prompt ? of.n_seq : length < CHUNK ? length : CHUNK;
    for (int i = 0; i < j->n_tok; i++) {
        int pos = prompt ? length - j->n_tok + i : length - 1;
        j->rows[i] = (cake_row){prompt ? 0 : i, pos, prompt ? CAKE_ROW_PROMPT : CAKE_ROW_GENERATED, 0, 0, 0};
        j->seen += pos + 1;
    }
    j->read = of.shared + (double)of.n_seq * of.own;
}

static void report_roofline(cake_bench *bench, const char *name, job *j, int threads)
{
    peak_kind kind = peak_rate(bench, PEAK_BF16, threads) > 0 ? PEAK_BF16 : PEAK_F32;
    double flops = 4.0 * HEADS * DIM * j->seen, bytes = 2.0 * 2 * KV_HEADS * DIM * j->read;
    double by_flops = flops / peak_rate(bench, kind, threads),
           by_read = bytes / peak_rate(bench, PEAK_READ, threads);
    double seconds = cake_bench_time(bench, threads, attend, j);
    if (by_flops > by_read)
        peak_report_flops(bench, name, threads, kind, flops, seconds);
    else
        peak_report_bytes(bench, name, threads, PEAK_READ, bytes, seconds);
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

static void fill_cache(job *j, int64_t n)
{
    uint16_t *k = j->kv.k, *v = j->kv.v;
    for (int64_t i = 0; i < n; i++) {
        k[i] = cake_bf16_from_f32((float)(i * 7919 % 2003 - 1001) * 0x1p-10f);
        v[i] = cake_bf16_from_f32((float)(i * 104729 % 2003 - 1001) * 0x1p-10f);
    }
    for (int i = 1; i < j->n_copy; i++) {
        memcpy((char *)k + (size_t)i * j->cache, k, j->cache);
        memcpy((char *)v + (size_t)i * j->cache, v, j->cache);
    }
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
    int64_t page = (int64_t)KV_HEADS * CAKE_PAGE * DIM;
    job j = {.op = bench->kernels, .cache = (size_t)(n_page * page) * sizeof(uint16_t)};
    size_t act = (size_t)n_row * HEADS * DIM * sizeof(float);
    j.n_copy = of.n_seq == 1 || bench->smoke ? 1 : (int)(BYTES / (2 * j.cache)) + 1;
    size_t half = (size_t)j.n_copy * j.cache;
    cake_arena arena;
    cake_err err = cake_arena_open(&arena, "bench", 2 * half + 2 * act);
    if (!err) {
        j.kv = (cake_kv){.k = cake_arena_take(&arena, half),
                         .v = cake_arena_take(&arena, half),
                         .page_step = page,
                         .dtype = CAKE_BF16,
                         .n_kv = KV_HEADS,
                         .head_dim = DIM,
                         .table = table,
                         .stride = stride};
        j.q = cake_arena_take(&arena, act);
        j.out = cake_arena_take(&arena, act);
        fill_cache(&j, n_page * page);
        for (int64_t i = 0; i < (int64_t)n_row * HEADS * DIM; i++)
            j.q[i] = (float)(i * 7907 % 2003 - 1001) * 0x1p-10f;
        j.rows = cake_alloc((size_t)n_row, sizeof *j.rows);
        fill_rows(&j, of);
        for (int threads = 1; threads; threads = cake_bench_next_threads(bench, threads))
            report_roofline(bench, self->name, &j, threads);
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
    {NULL, NULL, NULL, 0},
};
