/* SPDX-License-Identifier: Apache-2.0
 *
 * Row operations between the matrix products: norms, rotary embedding, activations, the cache's store, the
 * embedding's gather. Rows as in Qwen3-0.6B, too many for the caches; results are fractions of the copy
 * bandwidth.
 * Invariant: an operation that differs from plain C is not timed.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "bench/peak_rates.h"

#define BYTES ((size_t)384 << 20) /* of all rows, read and written */

enum {
    DIM = 1024,
    HEADS = 16,
    KV_HEADS = 8,
    HEAD_DIM = 128,
    FF = 3072,
    CHECKED = 192,
    TABLE = 65536,
    SAMPLE = 64
};

typedef struct job {
    const cake_kernels *op;
    float *x, *y, *out; /* [n, in], [n, more], [n, width of the result] or x */
    cake_kv kv;
    cake_row *rows;
    cake_weight table;
    int32_t *ids;
    int n;
} job;

static void rmsnorm(const cake_exec *exec, void *arg)
{
    job *j = arg;
    j->op->rmsnorm(exec, j->out, j->x, j->y, NULL, j->n, DIM, 1e-6f);
    cake_exec_barrier(exec);
}

static void rmsnorm_gated(const cake_exec *exec, void *arg)
{
    job *j = arg;
    j->op->rmsnorm_gated(exec, j->x, j->y, j->y, j->n * (DIM / HEAD_DIM), HEAD_DIM, 1e-6f);
    cake_exec_barrier(exec);
}

/* Rows of all heads, with the norm of each or without. */
static void turn(const cake_exec *exec, job *j, const float *norm)
{
    const float *sin = j->y + (size_t)j->n * (HEAD_DIM / 2);
    j->op->rope(exec, j->x, norm, 1e-6f, j->y, sin, j->n, HEADS, HEAD_DIM, HEAD_DIM);
    cake_exec_barrier(exec);
}

static void rope(const cake_exec *exec, void *arg)
{
    turn(exec, arg, NULL);
}

static void norm_rope(const cake_exec *exec, void *arg)
{
    static const float norm[HEAD_DIM] = {[0 ... HEAD_DIM - 1] = 1};
    turn(exec, arg, norm);
}

/* Packed for float32 products, so that as many bytes are written as read. */
static void pack(const cake_exec *exec, job *j, cake_act act)
{
    cake_gate gate = {.g = j->y, .act = act};
    j->op->input_pack(exec, j->out, j->x, &gate, CAKE_F32, FF, j->n);
    cake_exec_barrier(exec);
}

static void silu(const cake_exec *exec, void *arg)
{
    pack(exec, arg, CAKE_ACT_SILU);
}

static void gelu(const cake_exec *exec, void *arg)
{
    pack(exec, arg, CAKE_ACT_GELU);
}

static void sigmoid(const cake_exec *exec, void *arg)
{
    pack(exec, arg, CAKE_ACT_SIGMOID);
}

static void kv_store(const cake_exec *exec, void *arg)
{
    job *j = arg;
    j->op->kv_store(exec, &j->kv, j->x, j->y, j->rows, j->n);
    cake_exec_barrier(exec);
}

static void gather(const cake_exec *exec, void *arg)
{
    job *j = arg;
    j->op->gather(exec, j->out, &j->table, j->ids, j->n, 1);
    cake_exec_barrier(exec);
}

typedef enum kind { RMSNORM, GATED, ROPE, NORM_ROPE, SILU, GELU, SIGMOID, STORE, GATHER } kind;

/* Floats of a row that are read from x, read from y, and written; written 0: in place. */
static const struct {
    void (*run)(const cake_exec *exec, void *arg);
    int in, more, out;
} operations[] = {
    [RMSNORM] = {rmsnorm, DIM, 0, DIM},
    [GATED] = {rmsnorm_gated, DIM, DIM, 0},
    [ROPE] = {rope, HEADS *HEAD_DIM, HEAD_DIM, 0},
    [NORM_ROPE] = {norm_rope, HEADS *HEAD_DIM, HEAD_DIM, 0},
    [SILU] = {silu, FF, FF, FF},
    [GELU] = {gelu, FF, FF, FF},
    [SIGMOID] = {sigmoid, FF, FF, FF},
    [STORE] = {kv_store, KV_HEADS *HEAD_DIM, KV_HEADS *HEAD_DIM,
               KV_HEADS *HEAD_DIM}, /* two of half the size */
    [GATHER] = {gather, DIM / 2, 0, DIM},
};

/* The cache's pages are contiguous in out, those of K first; rows are positions of one sequence. */
static void make_cache(job *j)
{
    int64_t page = (int64_t)KV_HEADS * CAKE_PAGE * HEAD_DIM;
    int n_page = j->n / CAKE_PAGE;
    int32_t *table = cake_alloc((size_t)n_page, sizeof *table);
    for (int i = 0; i < n_page; i++)
        table[i] = i;
    uint16_t *k = (uint16_t *)(void *)j->out;
    j->kv = (cake_kv){.k = k,
                      .v = k + page * n_page,
                      .page_step = page,
                      .dtype = CAKE_BF16,
                      .n_kv = KV_HEADS,
                      .head_dim = HEAD_DIM,
                      .table = table,
                      .stride = n_page};
    j->rows = cake_alloc((size_t)j->n, sizeof *j->rows);
    for (int i = 0; i < j->n; i++)
        j->rows[i] = (cake_row){.pos = i, .kind = CAKE_ROW_PROMPT, .rope_len = j->n};
}

static cake_err make_table(job *j, int n_row, cake_arena *arena)
{
    enum { STRIP = 64 };
    size_t bytes = j->op->weight_bytes(&(cake_weight){.n_out = n_row, .n_in = DIM, .dtype = CAKE_BF16});
    cake_err err = cake_arena_open(arena, "bench", bytes);
    if (err)
        return err;
    j->table = (cake_weight){cake_arena_take(arena, bytes), n_row, DIM, CAKE_BF16, NULL};
    uint16_t *rows = cake_alloc((size_t)STRIP * DIM, sizeof *rows);
    for (int first = 0; first < n_row; first += STRIP) {
        for (int i = 0; i < STRIP * DIM; i++)
            rows[i] = cake_bf16_from_f32((float)((first * 31 + i * 7919) % 2003 - 1001) * 0x1p-10f);
        j->op->weight_pack(&j->table, rows, first, STRIP);
    }
    free(rows);
    j->ids = cake_alloc((size_t)j->n, sizeof *j->ids);
    for (int i = 0; i < j->n; i++)
        j->ids[i] = (int32_t)(((uint64_t)i * 0x9E3779B97F4A7C15 >> 33) % (uint64_t)n_row);
    return CAKE_OK;
}

typedef struct rig_memory {
    cake_arena arena, table;
} rig_memory;

static size_t row_bytes(kind k)
{
    return (size_t)(operations[k].in + operations[k].more + operations[k].out) * sizeof(float);
}

/* Everything for n rows, a multiple of CAKE_PAGE. */
static cake_err open_job(const cake_kernels *op, kind k, int n, int n_row, job *j, rig_memory *at)
{
    size_t in = (size_t)n * (size_t)operations[k].in, more = (size_t)n * (size_t)operations[k].more;
    more = more > DIM ? more : DIM; /* at least a norm's weight */
    *j = (job){.op = op, .n = n};
    *at = (rig_memory){0};
    size_t bytes = (in + more + (size_t)n * (size_t)operations[k].out) * sizeof(float);
    cake_err err = cake_arena_open(&at->arena, "bench", bytes + 3 * (size_t)CAKE_ALIGN);
    if (err)
        return err;
    j->x = cake_arena_take(&at->arena, in * sizeof *j->x);
    j->y = cake_arena_take(&at->arena, more * sizeof *j->y);
    j->out = operations[k].out
                 ? cake_arena_take(&at->arena, (size_t)n * (size_t)operations[k].out * sizeof(float))
                 : j->x;
    for (size_t i = 0; i < in; i++)
        j->x[i] = (float)((int)(i * 7919 % 2003) - 1001) * 0x1p-8f;
    /* repeated in-place operations must not change the magnitude: rotations of length 1 */
    for (size_t i = 0; i < more; i++)
        j->y[i] = (float)((int)(i * 7907 % 2003) - 1001) * 0x1p-8f;
    for (int i = 0; (k == ROPE || k == NORM_ROPE) && i < n * (HEAD_DIM / 2); i++) {
        j->y[i] = cosf((float)(i % 997));
        j->y[i + n * (HEAD_DIM / 2)] = sinf((float)(i % 997));
    }
    if (k == STORE)
        make_cache(j);
    return k == GATHER ? make_table(j, n_row, &at->table) : CAKE_OK;
}

static void close_job(job *j, rig_memory *at)
{
    free((void *)(uintptr_t)j->kv.table);
    free(j->rows);
    free(j->ids);
    cake_arena_close(&at->arena);
    cake_arena_close(&at->table);
}

static void multiply(const cake_exec *exec, void *arg)
{
    job *j = arg;
    j->op->linear(exec, j->x, j->out, &j->table, NULL, NULL, j->n);
}

/* Unpacks SAMPLE elements of each row into x by a product with rows of the unit matrix. */
static cake_err unpack(job *j, cake_arena *arena)
{
    size_t bytes = j->op->weight_bytes(&(cake_weight){.n_out = SAMPLE, .n_in = FF, .dtype = CAKE_F32});
    cake_err err = cake_arena_open(arena, "bench", bytes);
    if (err)
        return err;
    j->table = (cake_weight){cake_arena_take(arena, bytes), SAMPLE, FF, CAKE_F32, NULL};
    float *unit = cake_alloc((size_t)SAMPLE * FF, sizeof *unit);
    for (int i = 0; i < SAMPLE; i++)
        unit[i * FF + i * ((FF - 1) / (SAMPLE - 1))] = 1;
    j->op->weight_pack(&j->table, unit, 0, SAMPLE);
    free(unit);
    cake_exec_run(1, multiply, j);
    return CAKE_OK;
}

static bool close_to(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(a[i] - b[i]) <= 1e-6f + 2e-5f * fabsf(b[i])))
            return false;
    return true;
}

/* Compares a few rows with plain C: exactly if nothing is computed. */
static cake_err check(cake_bench *bench, const cake_case *self, int threads)
{
    kind k = (kind)self->kind;
    job mine, oracle;
    rig_memory at[2];
    cake_err err = open_job(bench->kernels, k, CHECKED, CHECKED, &mine, &at[0]);
    cake_err other = open_job(&cake_kernels_ref, k, CHECKED, CHECKED, &oracle, &at[1]);
    err = err ? err : other;
    bool packed = k == SILU || k == GELU || k == SIGMOID;
    if (!err) {
        cake_exec_run(threads, operations[k].run, &mine);
        cake_exec_run(1, operations[k].run, &oracle);
        err = packed ? unpack(&mine, &at[0].table) : CAKE_OK;
        err = packed && !err ? unpack(&oracle, &at[1].table) : err;
    }
    if (!err) {
        size_t n = (size_t)CHECKED * (size_t)(packed              ? SAMPLE
                                              : operations[k].out ? operations[k].out
                                                                  : operations[k].in);
        const float *a = packed ? mine.x : mine.out, *b = packed ? oracle.x : oracle.out;
        bool same = k == STORE || k == GATHER ? !memcmp(a, b, n * sizeof(float)) : close_to(a, b, n);
        if (!same)
            err = cake_fail("bench", "%s: %s does not agree with plain C; it is not timed", self->name,
                            bench->kernels->name);
    }
    close_job(&mine, &at[0]);
    close_job(&oracle, &at[1]);
    return err;
}

static cake_err run_rows(cake_bench *bench, const cake_case *self)
{
    kind k = (kind)self->kind;
    int n = bench->smoke ? CHECKED : (int)(BYTES / row_bytes(k)) / CAKE_PAGE * CAKE_PAGE;
    job j;
    rig_memory at;
    cake_err err = open_job(bench->kernels, k, n, bench->smoke ? CHECKED : TABLE, &j, &at);
    for (int threads = 1; threads && !err; threads = cake_bench_next_threads(bench, threads)) {
        err = check(bench, self, threads);
        if (!err)
            peak_report_bytes(bench, self->name, threads, PEAK_COPY, (double)n * (double)row_bytes(k),
                              cake_bench_time(bench, threads, operations[k].run, &j));
    }
    close_job(&j, &at);
    return err;
}

const cake_case cake_cases_rows[] = {
    {"rows.rmsnorm", "norm of rows of 1,024", run_rows, RMSNORM},
    {"rows.rmsnorm-gated", "norm of heads of 128, gated, in place", run_rows, GATED},
    {"rows.rope", "rotary embedding of 16 heads of 128, in place", run_rows, ROPE},
    {"rows.norm-rope", "norm and rotary embedding of 16 heads of 128, in place", run_rows, NORM_ROPE},
    {"rows.silu-mul", "silu(gate) up, packed for a product, rows of 3,072", run_rows, SILU},
    {"rows.gelu-mul", "gelu(gate) up, packed for a product, rows of 3,072", run_rows, GELU},
    {"rows.sigmoid-mul", "x sigmoid(gate), packed for a product, rows of 3,072", run_rows, SIGMOID},
    {"rows.kv-store", "K and V of 8 heads of 128 into pages of BF16", run_rows, STORE},
    {"rows.gather", "rows of an embedding of 65,536 x 1,024 in BF16", run_rows, GATHER},
    {NULL, NULL, NULL, 0},
};
