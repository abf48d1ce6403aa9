/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention in the shape of Qwen3-0.6B (16 query and 8 KV heads of 128, a cache in BF16): a wave of a prompt against
 * what it is counted in operations (of pairs of BF16, where the table has them), generated rows of many sequences
 * against what they read, from memory: so many copies of small caches take turns that no cache of the processor holds
 * them.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "bench/floor.h"

#define BYTES ((size_t)256 << 20) /* of all copies of what generated rows read */

enum { HEADS = 16, KV_HEADS = 8, DIM = 128, CHUNK = 512 };

typedef struct job {
    const cake_kernels *op;
    cake_kv kv;   /* of the first copy */
    size_t cache; /* bytes of K, and of V, in a copy; all K stand before all V */
    int n_copy, copy;
    cake_row *rows;
    float *q, *out; /* [n_tok, HEADS, DIM] */
    int n_tok;
    double seen; /* positions of all rows */
} job;

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

/* Sequences of so many positions: of one the last CHUNK rows, as prompt; of several the last row of each. */
static void fill_rows(job *j, int n_seq, int length)
{
    j->n_tok = n_seq > 1 ? n_seq : length < CHUNK ? length : CHUNK;
    for (int i = 0; i < j->n_tok; i++) {
        bool prompt = n_seq == 1;
        int pos = prompt ? length - j->n_tok + i : length - 1;
        j->rows[i] = (cake_row){prompt ? 0 : i, pos, prompt ? CAKE_ROW_PROMPT : CAKE_ROW_GENERATED, 0, 0};
        j->seen += pos + 1;
    }
}

static void report(cake_bench *bench, const char *name, job *j, int threads, bool prompt)
{
    double flops = 4.0 * HEADS * DIM * j->seen, bytes = 2.0 * 2 * KV_HEADS * DIM * j->seen;
    double seconds = cake_bench_time(bench, threads, attend, j);
    if (prompt)
        floor_say_flops(bench, name, threads,
                        floor_of(bench, FLOOR_BF16, threads) > 0 ? FLOOR_BF16 : FLOOR_F32, flops, seconds);
    else
        floor_say_bytes(bench, name, threads, FLOOR_READ, bytes, seconds);
}

/* self->kind: positions, times 100, plus sequences; one sequence is a prompt. */
static cake_err run_attend(cake_bench *bench, const cake_case *self)
{
    int n_seq = self->kind % 100, length = self->kind / 100;
    length = bench->smoke && length > 600 ? 600 : length;
    int stride = (length + CAKE_PAGE - 1) / CAKE_PAGE, n_page = n_seq * stride,
        n_row = n_seq > 1 ? n_seq : CHUNK;
    int64_t page = (int64_t)KV_HEADS * CAKE_PAGE * DIM;
    size_t cache = (size_t)(n_page * page) * sizeof(uint16_t),
           act = (size_t)n_row * HEADS * DIM * sizeof(float);
    int n_copy = n_seq == 1 || bench->smoke ? 1 : (int)(BYTES / (2 * cache)) + 1;
    cake_arena arena;
    cake_err err = cake_arena_open(&arena, "bench", (size_t)n_copy * 2 * cache + 2 * act);
    if (err)
        return err;
    int32_t *table = cake_alloc((size_t)n_page, sizeof *table);
    for (int i = 0; i < n_page; i++)
        table[i] = (int32_t)((int64_t)i * 7919 % n_page); /* as in a cache of many layers: nowhere near */
    job j = {.op = bench->kernels,
             .cache = cache,
             .n_copy = n_copy,
             .rows = cake_alloc((size_t)n_row, sizeof *j.rows)};
    j.kv = (cake_kv){cake_arena_take(&arena, (size_t)n_copy * cache),
                     cake_arena_take(&arena, (size_t)n_copy * cache),
                     page,
                     CAKE_BF16,
                     KV_HEADS,
                     DIM,
                     0,
                     table,
                     stride};
    j.q = cake_arena_take(&arena, act);
    j.out = cake_arena_take(&arena, act);
    uint16_t *k = j.kv.k, *v = j.kv.v;
    for (int64_t i = 0; i < n_page * page; i++) {
        k[i] = cake_bf16_from_f32((float)(i * 7919 % 2003 - 1001) * 0x1p-10f);
        v[i] = cake_bf16_from_f32((float)(i * 104729 % 2003 - 1001) * 0x1p-10f);
    }
    for (int i = 1; i < n_copy; i++) {
        memcpy((char *)k + (size_t)i * cache, k, cache);
        memcpy((char *)v + (size_t)i * cache, v, cache);
    }
    for (int64_t i = 0; i < (int64_t)n_row * HEADS * DIM; i++)
        j.q[i] = (float)(i * 7907 % 2003 - 1001) * 0x1p-10f;
    fill_rows(&j, n_seq, length);
    for (int threads = 1; threads; threads = cake_bench_more(bench, threads))
        report(bench, self->name, &j, threads, n_seq == 1);
    free(j.rows);
    free(table);
    cake_arena_close(&arena);
    return CAKE_OK;
}

const cake_case cake_cases_attend[] = {
    {"attend.prompt-512", "512 rows of a prompt, from its beginning", run_attend, 51201},
    {"attend.prompt-2048", "the last 512 rows of a prompt of 2,048", run_attend, 204801},
    {"attend.prompt-8192", "the last 512 rows of a prompt of 8,192", run_attend, 819201},
    {"attend.generated-8x512", "a row of 8 sequences of 512 positions", run_attend, 51208},
    {"attend.generated-64x160", "a row of 64 sequences of 160 positions", run_attend, 16064},
    {"attend.generated-16x4096", "a row of 16 sequences of 4,096 positions", run_attend, 409616},
    {NULL, NULL, NULL, 0},
};
