/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers of experts in the shapes of known models: the router's choice, and the products of the chosen
 * experts as a run makes them (gate and up, activation, down, combine). Products are fractions of the time to
 * read the experts that were met, or of the arithmetic, whichever is longer; the choice, of the time to read
 * its scores.
 *
 * Invariant: a product that differs from the table's oracle in any bit is not timed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "bench/peak_rates.h"
#include "kernels/experts.h"
#include "kernels/int8.h"

enum { SAMPLE = 32 }; /* outputs of each expert that are compared with the oracle */

typedef struct shape {
    int chosen, n_expert, dim, n_ff;
    cake_dtype dtype;
    cake_act act;
} shape;

static const shape shapes[] = {
    {8, 128, 2048, 768, CAKE_BF16, CAKE_ACT_SILU},    /* Qwen3-30B-A3B */
    {4, 32, 2880, 2880, CAKE_BF16, CAKE_ACT_CLAMPED}, /* gpt-oss-20b */
    {8, 256, 2048, 512, CAKE_BF16, CAKE_ACT_SILU},    /* Qwen3.5-35B-A3B */
    {2, 8, 4096, 14336, CAKE_BF16, CAKE_ACT_SILU},    /* Mixtral 8x7B */
    {8, 128, 2048, 768, CAKE_I8, CAKE_ACT_SILU},
};

enum { GATE, UP, DOWN, N_MATRIX };

typedef struct job {
    const cake_kernels *op;
    shape of;
    int n_row;
    cake_router router;
    cake_groups groups;
    cake_experts experts[N_MATRIX];
    float *logit, *score;    /* [n_row, n_expert]; a choice changes the latter */
    float *x, *out;          /* [n_row, dim] */
    float *gate, *up, *down; /* [sorted rows, n_ff] x2, [sorted rows, dim] */
    float *weight;           /* [n_row, chosen] */
    int32_t *choice;         /* [n_row, chosen] */
    void *input;             /* packed sorted rows */
} job;

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 31) * 0x9E3779B97F4A7C15;
    return x ^ x >> 29;
}

static cake_gate gate_of(const job *j)
{
    return (cake_gate){.g = j->gate, .act = j->of.act, .param = {[CAKE_ALPHA] = 1.702F, [CAKE_LIMIT] = 7}};
}

/* ---- what is timed */

static void choose(const cake_exec *exec, void *arg)
{
    job *j = arg;
    int64_t first, last, n = j->of.n_expert;
    cake_exec_range(exec, j->n_row, 1, &first, &last);
    memcpy(j->score + first * n, j->logit + first * n, (size_t)((last - first) * n) * sizeof *j->score);
    cake_router_choose(exec, &j->router, j->score, j->choice, j->weight, j->of.chosen, j->n_row);
    cake_exec_barrier(exec);
    if (exec->rank == 0)
        cake_groups_sort(&j->groups, j->choice, j->n_row, &j->router);
    cake_exec_barrier(exec);
}

static void multiply(const cake_exec *exec, void *arg)
{
    job *j = arg;
    const cake_kernels *op = j->op;
    const shape *of = &j->of;
    const cake_gate gate = gate_of(j);
    const cake_expert_product enter[] = {{j->gate, &j->experts[GATE]}, {j->up, &j->experts[UP]}},
                              leave = {j->down, &j->experts[DOWN]};
    op->input_pack_grouped(exec, j->input, j->x, NULL, of->dtype, of->dim, &j->groups, true);
    cake_exec_barrier(exec);
    op->linear_grouped(exec, enter, 2, j->input, &j->groups);
    cake_exec_barrier(exec);
    op->input_pack_grouped(exec, j->input, j->up, &gate, of->dtype, of->n_ff, &j->groups, false);
    cake_exec_barrier(exec);
    op->linear_grouped(exec, &leave, 1, j->input, &j->groups);
    cake_exec_barrier(exec);
    op->combine(exec, j->out, j->down, &j->groups, j->weight, NULL, j->n_row, of->dim);
    cake_exec_barrier(exec);
}

/* ---- operands */

/* Row `index` of a matrix, as weight_pack takes it. value [n_in]: scratch. */
static void fill_row(void *row, uint64_t index, const cake_weight *w, float *value)
{
    for (int k = 0; k < w->n_in; k++)
        value[k] = (float)(int32_t)mix(index << 20 ^ (uint64_t)k) * 0x1p-36F;
    if (w->dtype == CAKE_I8)
        cake_i8_from(row, value, CAKE_F32, w->n_in);
    else
        cake_from_f32(row, value, w->dtype, w->n_in);
}

/* Row i of expert e's matrix is this row of matrix 0, so that no two experts are equal. */
static int row_of(int e, int i, int n_out)
{
    return (int)((i + (int64_t)e * 7) % n_out);
}

static void fill_experts(const job *j, const cake_experts *x)
{
    const size_t bytes = cake_row_bytes(x->w.dtype, x->w.n_in);
    char *rows = cake_alloc((size_t)x->w.n_out, 2 * bytes), *turned = rows + (size_t)x->w.n_out * bytes;
    float *value = cake_alloc((size_t)x->w.n_in, sizeof *value);
    for (int i = 0; i < x->w.n_out; i++)
        fill_row(rows + (size_t)i * bytes, (uint64_t)i, &x->w, value);
    for (int e = 0; e < x->n; e++) {
        for (int i = 0; i < x->w.n_out; i++)
            memcpy(turned + (size_t)i * bytes, rows + (size_t)row_of(e, i, x->w.n_out) * bytes, bytes);
        cake_weight w = x->w;
        w.data = cake_expert_data(x, e);
        j->op->weight_pack(&w, turned, 0, w.n_out);
    }
    free(value);
    free(rows);
}

/* The first SAMPLE rows of each expert's matrix, packed by the oracle. */
static cake_experts sample_experts(const cake_kernels *oracle, const cake_experts *x)
{
    cake_experts sample = {.w = {.n_out = SAMPLE, .n_in = x->w.n_in, .dtype = x->w.dtype}, .n = x->n};
    const size_t bytes = cake_row_bytes(x->w.dtype, x->w.n_in);
    void *row = cake_alloc(1, bytes);
    float *value = cake_alloc((size_t)x->w.n_in, sizeof *value);
    sample.step = (int64_t)oracle->weight_bytes(&sample.w);
    sample.w.data = cake_alloc((size_t)x->n, (size_t)sample.step);
    for (int e = 0; e < x->n; e++) {
        cake_weight w = sample.w;
        w.data = cake_expert_data(&sample, e);
        for (int i = 0; i < SAMPLE; i++) {
            fill_row(row, (uint64_t)row_of(e, i, x->w.n_out), &x->w, value);
            oracle->weight_pack(&w, row, i, 1);
        }
    }
    free(value);
    free(row);
    return sample;
}

static void fill_inputs(const job *j)
{
    for (int64_t i = 0; i < (int64_t)j->n_row * j->of.n_expert; i++)
        j->logit[i] = (float)(int32_t)mix((uint64_t)i + 977) * 0x1p-29F;
    for (int64_t i = 0; i < (int64_t)j->n_row * j->of.dim; i++)
        j->x[i] = (float)((i * 7919 + i / 1024) % 2003 - 1001) * 0x1p-10F;
}

/* ---- the oracle */

/* One product of ungated rows: of x, or of sorted rows. */
typedef struct product {
    job *job;
    const cake_experts *experts;
    const float *in;
    float *out;
} product;

static void multiply_one(const cake_exec *exec, void *arg)
{
    const product *p = arg;
    const job *j = p->job;
    const cake_weight *w = &p->experts->w;
    j->op->input_pack_grouped(exec, j->input, p->in, NULL, w->dtype, w->n_in, &j->groups, p->in == j->x);
    cake_exec_barrier(exec);
    j->op->linear_grouped(exec, &(cake_expert_product){p->out, p->experts}, 1, j->input, &j->groups);
}

/* Whether sampled outputs of a product are the oracle's. */
static bool same_as_oracle(const product *p, int threads)
{
    const job *j = p->job;
    const cake_kernels *oracle = j->op->oracle;
    const cake_experts sample = sample_experts(oracle, p->experts);
    const cake_exec one = {0, 1, NULL};
    const int n_in = sample.w.n_in, n_out = p->experts->w.n_out, n_row = j->groups.n_sorted;
    void *input = cake_alloc(1, oracle->input_bytes(sample.w.dtype, n_in, n_row));
    float *want = cake_alloc((size_t)n_row * SAMPLE, sizeof *want);
    bool same = true;
    cake_exec_run(threads, multiply_one, (void *)p);
    oracle->input_pack_grouped(&one, input, p->in, NULL, sample.w.dtype, n_in, &j->groups, p->in == j->x);
    oracle->linear_grouped(&one, &(cake_expert_product){want, &sample}, 1, input, &j->groups);
    for (int64_t i = 0; i < n_row; i++)
        same = same && !memcmp(want + i * SAMPLE, p->out + i * n_out, SAMPLE * sizeof *want);
    free(want);
    free(input);
    free(sample.w.data);
    return same;
}

static bool all_same(job *j, int threads)
{
    const product all[] = {{j, &j->experts[GATE], j->x, j->gate},
                           {j, &j->experts[UP], j->x, j->up},
                           {j, &j->experts[DOWN], j->up, j->down}};
    return same_as_oracle(&all[0], threads) && same_as_oracle(&all[1], threads) &&
           same_as_oracle(&all[2], threads);
}

/* ---- measurements */

static void report_products(cake_bench *bench, const char *name, job *j, int threads)
{
    peak_kind kind = (peak_kind)cake_peak_of_products(j->op, j->of.dtype);
    double flops = 0, bytes = 0;
    for (int m = 0; m < N_MATRIX; m++) {
        const cake_weight *w = &j->experts[m].w;
        flops += 2.0 * w->n_out * w->n_in * j->groups.n_sorted;
        bytes += (double)w->n_out * (double)cake_row_bytes(w->dtype, w->n_in) * j->groups.n;
    }
    peak_report_roofline(bench, name, threads, kind, flops, bytes,
                         cake_bench_time(bench, threads, multiply, j));
}

static void report_choice(cake_bench *bench, const char *name, job *j, int threads)
{
    double bytes = (double)j->n_row * j->of.n_expert * sizeof(float);
    peak_report_bytes(bench, name, threads, PEAK_READ, bytes, cake_bench_time(bench, threads, choose, j));
}

static cake_err measure(cake_bench *bench, const char *name, job *j, bool only_choice)
{
    fill_inputs(j);
    for (int m = 0; m < N_MATRIX && !only_choice; m++)
        fill_experts(j, &j->experts[m]);
    for (int threads = 1; threads; threads = cake_bench_next_threads(bench, threads)) {
        cake_exec_run(threads, choose, j);
        if (only_choice)
            report_choice(bench, name, j, threads);
        else if (all_same(j, threads))
            report_products(bench, name, j, threads);
        else
            return cake_fail("bench", "%s: %s does not have the bits of plain C; it is not timed", name,
                             j->op->name);
    }
    return CAKE_OK;
}

/* Takes the operands from the arena; without one, only counts their bytes. */
static size_t take_operands(job *j, cake_arena *arena, bool only_choice)
{
    const shape *of = &j->of;
    const size_t n_row = (size_t)j->n_row, n = (size_t)of->n_expert, rows = n_row * (size_t)of->chosen;
    const size_t dim = (size_t)of->dim, n_ff = (size_t)of->n_ff,
                 input = j->op->input_bytes(of->dtype, of->dim, (int)rows),
                 hidden = j->op->input_bytes(of->dtype, of->n_ff, (int)rows);
    const struct {
        void *at; /* the pointer */
        size_t bytes;
        bool of_choice;
    } operands[] = {{&j->logit, n_row * n * sizeof(float), true},
                    {&j->score, n_row * n * sizeof(float), true},
                    {&j->weight, rows * sizeof(float), true},
                    {&j->choice, rows * sizeof(int32_t), true},
                    {&j->groups.expert, n * sizeof(int32_t), true},
                    {&j->groups.first, (n + 1) * sizeof(int32_t), true},
                    {&j->groups.row, rows * sizeof(int32_t), true},
                    {&j->groups.sorted, rows * sizeof(int32_t), true},
                    {&j->x, n_row * dim * sizeof(float), true},
                    {&j->out, n_row * dim * sizeof(float), false},
                    {&j->gate, rows * n_ff * sizeof(float), false},
                    {&j->up, rows * n_ff * sizeof(float), false},
                    {&j->down, rows * dim * sizeof(float), false},
                    {&j->input, input > hidden ? input : hidden, false},
                    {&j->experts[GATE].w.data, n * (size_t)j->experts[GATE].step, false},
                    {&j->experts[UP].w.data, n * (size_t)j->experts[UP].step, false},
                    {&j->experts[DOWN].w.data, n * (size_t)j->experts[DOWN].step, false}};
    size_t bytes = 0;
    for (size_t i = 0; i < sizeof operands / sizeof *operands; i++) {
        if (only_choice && !operands[i].of_choice)
            continue;
        bytes += cake_arena_round(operands[i].bytes);
        if (arena)
            *(void **)operands[i].at = cake_arena_take(arena, operands[i].bytes);
    }
    return bytes;
}

/* self->kind: rows, plus 1000 times the index of a shape; of a choice alone less than zero. */
static cake_err run_experts(cake_bench *bench, const cake_case *self)
{
    const bool only_choice = self->kind < 0;
    const int kind = abs(self->kind);
    job j = {.op = bench->kernels, .of = shapes[kind / 1000], .n_row = kind % 1000};
    if (bench->smoke) {
        j.of.dim = 256;
        j.of.n_ff = 64;
    }
    j.router = (cake_router){.n_expert = j.of.n_expert,
                             .n_chosen = j.of.chosen,
                             .n_group = 1,
                             .n_group_chosen = 1,
                             .group_best = 1,
                             .renormalise = true,
                             .scale = 1};
    j.groups.stride = j.of.chosen;
    for (int m = 0; m < N_MATRIX; m++) {
        cake_weight w = {.n_out = m == DOWN ? j.of.dim : j.of.n_ff,
                         .n_in = m == DOWN ? j.of.n_ff : j.of.dim,
                         .dtype = j.of.dtype};
        j.experts[m] = (cake_experts){.w = w, .n = j.of.n_expert, .step = (int64_t)j.op->weight_bytes(&w)};
    }
    cake_arena arena;
    cake_err err = cake_arena_open(&arena, "bench", take_operands(&j, NULL, only_choice));
    if (err)
        return err;
    take_operands(&j, &arena, only_choice);
    err = measure(bench, self->name, &j, only_choice);
    cake_arena_close(&arena);
    return err;
}

/* The numbers of rows of one shape. */
#define SHAPE(name, index, what)                                                                             \
    {"experts." name ".1", what ", 1 row", run_experts, (index)*1000 + 1},                                   \
        {"experts." name ".8", what ", 8 rows", run_experts, (index)*1000 + 8},                              \
        {"experts." name ".64", what ", 64 rows", run_experts, (index)*1000 + 64},                           \
    {                                                                                                        \
        "experts." name ".512", what ", 512 rows", run_experts, (index)*1000 + 512                           \
    }

const cake_case cake_cases_experts[] = {
    SHAPE("8-of-128", 0, "8 of 128 experts, Qwen3-30B-A3B"),
    SHAPE("4-of-32", 1, "4 of 32 experts, gpt-oss-20b"),
    SHAPE("8-of-256", 2, "8 of 256 experts, Qwen3.5-35B-A3B"),
    SHAPE("2-of-8", 3, "2 of 8 experts, Mixtral 8x7B"),
    SHAPE("i8.8-of-128", 4, "8 of 128 experts in int8, Qwen3-30B-A3B"),
    {"experts.choose-8-of-128", "the router's choice, 512 rows", run_experts, -(0 * 1000 + 512)},
    {"experts.choose-8-of-256", "the router's choice, 512 rows", run_experts, -(2 * 1000 + 512)},
    {NULL, NULL, NULL, 0},
};
