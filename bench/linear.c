/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products with the shapes of Qwen3-0.6B in BF16, float32, F16 and int8, as fractions of the peak that
 * limits each shape and number of rows.
 *
 * Invariant: a product that differs from the table's oracle in any bit is not timed; nor is one of a GPU,
 * which has no oracle, that is far from plain C's. Weights are read from
 * memory: small matrices are used in turn, in enough copies to exceed all caches.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "bench/peak_rates.h"
#include "kernels/format.h"
#include "kernels/int8.h"
#include "kernels/memory.h"

#define BYTES  ((size_t)256 << 20) /* of all copies of a matrix */
#define SAMPLE 64                  /* columns that are compared with the oracle */
#define STRIP  32                  /* rows of the matrix that are packed together */
#define FORM   1000000             /* times an index of forms: part of the kind of a measurement */
enum { BF16, INT8, F32, F16, Q8_0, Q4_0, Q4_K, Q6_K, MXFP4, E4M3, INT4, N_FORM };

/* How matrices are kept. */
static const struct {
    cake_dtype dtype;
    const char *blocks;  /* a format of blocks */
    cake_format grouped; /* group > 0: a grouped one */
} forms[N_FORM] = {
    [BF16] = {CAKE_BF16, NULL, {0}},
    [INT8] = {CAKE_I8, NULL, {0}},
    [F32] = {CAKE_F32, NULL, {0}},
    [F16] = {CAKE_F16, NULL, {0}},
    [Q8_0] = {CAKE_Q8, "q8_0", {0}},
    [Q4_0] = {CAKE_Q8, "q4_0", {0}},
    [Q4_K] = {CAKE_Q8, "q4_k", {0}},
    [Q6_K] = {CAKE_Q8, "q6_k", {0}},
    [MXFP4] = {CAKE_Q8, "mxfp4", {0}},
    [E4M3] = {CAKE_BF16, NULL, {.code = CAKE_CODE_E4M3, .scale = CAKE_SCALE_BF16, .group = 128}},
    [INT4] = {CAKE_Q8, NULL, {.code = CAKE_CODE_U4, .scale = CAKE_SCALE_F16, .group = 128, .zero = true}},
};

static const struct {
    int n_out, n_in;
} shapes[] = {{2048, 1024}, {1024, 1024}, {1024, 2048}, {3072, 1024}, {1024, 3072}, {151936, 1024}};

typedef struct job {
    const cake_kernels *op;
    cake_weight w;
    size_t bytes; /* of one copy; copies are contiguous */
    int n_copy, copy, n_row;
    float *rows;    /* [n_row, n_in] on the host */
    float *x, *out; /* the same, and [n_row, n_out], where the kernels have their memory */
    void *input;    /* x, packed */
} job;

static float weight_at(int64_t row, int64_t k)
{
    uint64_t h = ((uint64_t)row << 20 ^ (uint64_t)k) * 0x9E3779B97F4A7C15;
    return (float)(int32_t)(h >> 32) * 0x1p-36f;
}

/* A quantised row: any codes, scales that are finite. */
static void fill_quantized(uint8_t *row, int64_t index, const cake_weight *w)
{
    const cake_format *f = w->format;
    const size_t bytes = cake_weight_row_bytes(w), scale = cake_scale_bytes(f->scale);
    for (size_t i = 0; i < bytes; i++)
        row[i] = (uint8_t)((int32_t)(weight_at(index, (int64_t)i) * 0x1p36f) >> 8) & 0x77;
    for (int i = 0; f->block && i < w->n_in / f->block; i++)
        for (int h = 0; h < 2 && f->half[h] >= 0; h++)
            row[i * f->bytes + f->half[h] + 1] &= 0x1F;
    for (int i = 0; f->half[0] < 0 && f->block && i < w->n_in / f->block; i++)
        row[i * f->bytes] |= 0x40; /* MXFP4's scale */
    for (int g = 0; !f->block && g < cake_format_groups(f, w->n_in); g++)
        row[cake_format_scales(f) + (size_t)(g + 1) * scale - 1] = 0x3B; /* about 2^-9 in BF16 */
}

/* Row `index` of a matrix, as weight_pack takes it. */
static void fill_row(void *row, int64_t index, const cake_weight *w)
{
    if (w->format) {
        fill_quantized(row, index, w);
        return;
    }
    float *value = cake_alloc((size_t)w->n_in, sizeof *value);
    for (int k = 0; k < w->n_in; k++)
        value[k] = weight_at(index, k);
    if (w->dtype == CAKE_I8)
        cake_i8_from(row, value, CAKE_F32, w->n_in);
    else
        cake_from_f32(row, value, w->dtype, w->n_in);
    free(value);
}

static void pack_all(const job *j)
{
    size_t row_bytes = cake_weight_row_bytes(&j->w);
    char *rows = cake_alloc(STRIP, row_bytes);
    for (int first = 0; first < j->w.n_out; first += STRIP) {
        int n = j->w.n_out - first < STRIP ? j->w.n_out - first : STRIP;
        for (int i = 0; i < n; i++)
            fill_row(rows + (size_t)i * row_bytes, first + i, &j->w);
        j->op->weight_pack(&j->w, rows, first, n);
    }
    free(rows);
    for (int i = 1; i < j->n_copy; i++)
        cake_memory_copy(j->op->memory, (char *)j->w.data + (size_t)i * j->bytes, j->w.data, j->bytes);
}

static void multiply(const cake_exec *exec, void *arg)
{
    job *j = arg;
    cake_weight w = j->w;
    w.data = (char *)w.data + (size_t)j->copy * j->bytes;
    j->op->input_pack(exec, j->input, j->x, NULL, w.dtype, w.n_in, j->n_row);
    cake_exec_barrier(exec);
    j->op->linear(exec, j->out, j->input, &w, NULL, NULL, j->n_row);
    cake_exec_barrier(exec);
    if (exec->rank == 0)
        j->copy = (j->copy + 1) % j->n_copy;
}

/* Compares SAMPLE columns, spread over the matrix, with the oracle, bit for bit. */
static bool same_as_oracle(job *j, int threads)
{
    const cake_kernels *oracle = j->op->oracle ? j->op->oracle : &cake_kernels_ref;
    const double allowed = j->op->oracle ? 0 : 0.02; /* sums are below 1; x may be rounded to BF16 */
    int n_in = j->w.n_in;
    bool same = true;
    size_t row_bytes = cake_weight_row_bytes(&j->w);
    cake_weight w = {cake_alloc(SAMPLE, row_bytes + 64), SAMPLE, n_in, j->w.dtype, j->w.format};
    void *row = cake_alloc(1, row_bytes);
    float *out = cake_alloc((size_t)j->n_row * SAMPLE, sizeof *out);
    int64_t far = (j->w.n_out - 1) / (SAMPLE - 1);
    for (int i = 0; i < SAMPLE; i++) {
        fill_row(row, i * far, &w);
        oracle->weight_pack(&w, row, i, 1);
    }
    cake_exec alone = {0, 1, NULL};
    void *input = cake_alloc(1, oracle->input_bytes(w.dtype, n_in, j->n_row));
    oracle->input_pack(&alone, input, j->rows, NULL, w.dtype, n_in, j->n_row);
    oracle->linear(&alone, out, input, &w, NULL, NULL, j->n_row);
    free(input);
    cake_exec_run(threads, multiply, j);
    float *got = cake_alloc((size_t)j->n_row * (size_t)j->w.n_out, sizeof *got);
    cake_memory_download(j->op->memory, got, j->out, (size_t)j->n_row * (size_t)j->w.n_out * sizeof *got);
    for (int64_t t = 0; t < j->n_row; t++)
        for (int i = 0; i < SAMPLE; i++) {
            const float wanted = out[t * SAMPLE + i], has = got[t * j->w.n_out + i * far];
            same = same &&
                   (allowed > 0 ? fabs((double)wanted - has) <= allowed : !memcmp(&wanted, &has, sizeof has));
        }
    free(got);
    free(w.data);
    free(row);
    free(out);
    return same;
}

static void report(cake_bench *bench, const char *name, const job *j, int threads)
{
    peak_kind kind = (peak_kind)cake_peak_of_products(j->op, j->w.dtype);
    double flops = 2.0 * j->w.n_out * j->w.n_in * j->n_row;
    double bytes = (double)j->w.n_out * (double)cake_weight_row_bytes(&j->w);
    peak_report_roofline(bench, name, threads, kind, flops, bytes,
                         cake_bench_time(bench, threads, multiply, (void *)j));
}

static cake_err run_with(cake_bench *bench, const cake_case *self)
{
    const cake_kernels *op = bench->kernels;
    const int form = self->kind / FORM;
    const cake_dtype dtype = forms[form].dtype;
    int shape = self->kind % FORM / 1000, n_out = shapes[shape].n_out, n_in = shapes[shape].n_in;
    n_out = bench->smoke && n_out > 4096 ? 4096 : n_out;
    job j = {.op = op, .w = {.n_out = n_out, .n_in = n_in, .dtype = dtype}, .n_row = self->kind % 1000};
    if (forms[form].blocks)
        j.w.format = cake_format_find(forms[form].blocks);
    else if (forms[form].grouped.group)
        j.w.format = &forms[form].grouped;
    cake_arena arena;
    j.bytes = op->weight_bytes(&j.w);
    j.n_copy = bench->smoke ? 1 : (int)((BYTES + j.bytes - 1) / j.bytes);
    size_t x = cake_arena_round((size_t)j.n_row * (size_t)n_in * sizeof(float));
    size_t out = cake_arena_round((size_t)j.n_row * (size_t)n_out * sizeof(float));
    size_t input = op->input_bytes(dtype, n_in, j.n_row);
    cake_err err =
        cake_memory_open(op->memory, &arena, "bench", j.bytes * (size_t)j.n_copy + x + input + out);
    if (err)
        return err;
    j.w.data = cake_arena_take(&arena, j.bytes * (size_t)j.n_copy);
    j.x = cake_arena_take(&arena, x);
    j.input = cake_arena_take(&arena, input);
    j.out = cake_arena_take(&arena, out);
    j.rows = cake_alloc((size_t)j.n_row * (size_t)n_in, sizeof *j.rows);
    for (int64_t i = 0; i < (int64_t)j.n_row * n_in; i++)
        j.rows[i] = (float)((i * 7919 + i / 1024) % 2003 - 1001) * 0x1p-10f;
    cake_memory_upload(op->memory, j.x, j.rows, (size_t)j.n_row * (size_t)n_in * sizeof *j.rows);
    pack_all(&j);
    for (int threads = 1; threads && !err; threads = cake_bench_next_threads(bench, threads))
        if (same_as_oracle(&j, threads))
            report(bench, self->name, &j, threads);
        else
            err = cake_fail("bench", "%s: %s does not have the %s of plain C; it is not timed", self->name,
                            op->name, op->oracle ? "bits" : "sums");
    free(j.rows);
    cake_memory_close(op->memory, &arena);
    return err;
}

static cake_err run_linear(cake_bench *bench, const cake_case *self)
{
    const int form = self->kind / FORM;
    cake_err err = cake_bench_open_kernels(bench, false);
    if (!err && bench->of_cpu && (forms[form].blocks || forms[form].grouped.group)) {
        bench->lacks = "CPUs: GPUs have no kernels for quantised weights of files";
        err = CAKE_END;
    }
    if (!err)
        err = run_with(bench, self);
    cake_bench_close_kernels(bench);
    return err == CAKE_END ? CAKE_OK : err;
}

/* The numbers of rows of one shape: the thousands of a kind. */
#define SHAPE(name, index, what)                                                                             \
    {"linear." name ".1", what ", 1 row", run_linear, (index)*1000 + 1},                                     \
        {"linear." name ".8", what ", 8 rows", run_linear, (index)*1000 + 8},                                \
        {"linear." name ".32", what ", 32 rows", run_linear, (index)*1000 + 32},                             \
        {"linear." name ".128", what ", 128 rows", run_linear, (index)*1000 + 128},                          \
    {                                                                                                        \
        "linear." name ".512", what ", 512 rows", run_linear, (index)*1000 + 512                             \
    }

const cake_case cake_cases_linear[] = {
    SHAPE("q", 0, "product with 2048 x 1024"),
    SHAPE("k", 1, "product with 1024 x 1024"),
    SHAPE("o", 2, "product with 1024 x 2048"),
    SHAPE("gate", 3, "product with 3072 x 1024"),
    SHAPE("down", 4, "product with 1024 x 3072"),
    SHAPE("head", 5, "product with 151936 x 1024"),
    SHAPE("i8.q", INT8 *FORM / 1000 + 0, "int8 product with 2048 x 1024"),
    SHAPE("i8.k", INT8 *FORM / 1000 + 1, "int8 product with 1024 x 1024"),
    SHAPE("i8.o", INT8 *FORM / 1000 + 2, "int8 product with 1024 x 2048"),
    SHAPE("i8.gate", INT8 *FORM / 1000 + 3, "int8 product with 3072 x 1024"),
    SHAPE("i8.down", INT8 *FORM / 1000 + 4, "int8 product with 1024 x 3072"),
    SHAPE("i8.head", INT8 *FORM / 1000 + 5, "int8 product with 151936 x 1024"),
    SHAPE("f32.gate", F32 *FORM / 1000 + 3, "float32 product with 3072 x 1024"),
    SHAPE("f32.down", F32 *FORM / 1000 + 4, "float32 product with 1024 x 3072"),
    SHAPE("f16.gate", F16 *FORM / 1000 + 3, "F16 product with 3072 x 1024"),
    SHAPE("f16.down", F16 *FORM / 1000 + 4, "F16 product with 1024 x 3072"),
    SHAPE("q8_0.gate", Q8_0 *FORM / 1000 + 3, "Q8_0 product with 3072 x 1024"),
    SHAPE("q4_0.gate", Q4_0 *FORM / 1000 + 3, "Q4_0 product with 3072 x 1024"),
    SHAPE("q4_k.gate", Q4_K *FORM / 1000 + 3, "Q4_K product with 3072 x 1024"),
    SHAPE("q6_k.gate", Q6_K *FORM / 1000 + 3, "Q6_K product with 3072 x 1024"),
    SHAPE("mxfp4.gate", MXFP4 *FORM / 1000 + 3, "MXFP4 product with 3072 x 1024"),
    SHAPE("e4m3.gate", E4M3 *FORM / 1000 + 3, "E4M3 product with 3072 x 1024"),
    SHAPE("int4.gate", INT4 *FORM / 1000 + 3, "int4 product with 3072 x 1024"),
    {NULL, NULL, NULL, 0},
};
