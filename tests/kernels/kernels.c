/* SPDX-License-Identifier: Apache-2.0
 *
 * Every table compared with float64 and with itself: rows, teams and places must not change the bits.
 * Attention and the product with a head have tests of their own (attend.c, head.c).
 */
#include <math.h>

#include "matrices.h"

static void run_rmsnorm(const cake_exec *exec, void *arg)
{
    call *c = arg;
    c->op->rmsnorm(exec, c->out, c->x, c->bias, c->residual, c->n_row, c->dim, 1e-6f);
}

static void run_rope(const cake_exec *exec, void *arg)
{
    call *c = arg;
    c->op->rope(exec, c->out, c->residual, 1e-6f, c->x, c->bias, c->n_row, c->n_head, c->dim, c->n_rot);
}

static const int shapes[][2] = {/* n_out, n_in */
                                {1, 1},   {1, 88},   {88, 1},   {136, 88},   {88, 136},
                                {517, 9}, {31, 300}, {33, 513}, {130, 1030}, {75, 4300}};

static double linear_double(const matrix *m, const float *x, int column, double *size)
{
    double sum = 0;
    *size = 0;
    for (int k = 0; k < m->w.n_in; k++) {
        double term = (double)x[k] * (double)m->value[(int64_t)column * m->w.n_in + k];
        sum += term;
        *size += fabs(term);
    }
    return sum;
}

/* The bound of any order of n float32 sums: n units in the last place of the sum of absolute values; half a
 * unit of BF16 where x is rounded to that; half a step for each value, where x is quantised: all are below 1
 * here. */
static int linear_errors(const call *c, const matrix *m)
{
    int wrong = 0;
    for (int t = 0; t < c->n_row; t++)
        for (int o = 0; o < m->w.n_out; o++) {
            double size, sum = linear_double(m, c->x + (int64_t)t * m->w.n_in, o, &size);
            int64_t at = (int64_t)t * m->w.n_out + o;
            if (c->bias)
                sum += (double)c->bias[o];
            if (c->residual)
                sum += (double)c->residual[at];
            double bound = (m->w.n_in + 2) * 0x1p-24 * (size + 2);
            if (rounds_input(c->op, m->w.dtype))
                bound += (m->w.dtype == CAKE_BF16 ? 0x1p-8 : 0x1p-11) * size;
            if (m->w.dtype == CAKE_I8)
                for (int k = 0; k < m->w.n_in; k++)
                    bound += 0.5001 / 127 * fabs((double)m->value[(int64_t)o * m->w.n_in + k]);
            wrong += !(fabs((double)c->out[at] - sum) <= bound);
        }
    return wrong;
}

static void linear_against_double(const cake_kernels *op)
{
    for (int s = 0; s < COUNT(shapes); s++)
        for (int dtype = 0; dtype < CAKE_N_KEPT; dtype++)
            for (int with = 0; with < 4; with++) {
                int n_out = shapes[s][0], n_in = shapes[s][1], n_row = 3;
                matrix m = matrix_open(op, (cake_dtype)dtype, n_out, n_in);
                float *x = random_floats((size_t)(n_row * n_in), 1);
                float *bias = random_floats((size_t)n_out, 2);
                float *residual = random_floats((size_t)(n_row * n_out), 3);
                float *out = random_floats((size_t)(n_row * n_out), 4);
                call c = product(op, out, x, &m.w, n_row);
                c.bias = with & 1 ? bias : NULL;
                c.residual = with & 2 ? residual : NULL;
                run_linear(2, &c);
                CU_ASSERT_EQUAL(linear_errors(&c, &m), 0);

                /* In place on the residual stream. */
                float *stream = copy_floats(residual, (size_t)(n_row * n_out));
                call in_place = c;
                in_place.out = stream;
                in_place.residual = with & 2 ? stream : NULL;
                run_linear(2, &in_place);
                CU_ASSERT(same_bits(stream, out, (size_t)(n_row * n_out)));
                free(stream);
                free(out);
                free(residual);
                free(bias);
                free(x);
                matrix_close(&m);
            }
}

static void test_linear_double(void)
{
    for_tables(linear_against_double);
}

/* The order of a sum is part of the contract, so all tables give the bits of their oracle. */
static void linear_against_ref(const cake_kernels *op)
{
    static const int rows[] = {1, 2, 17};
    for (int s = 0; op->oracle && s < COUNT(shapes) * COUNT(rows); s++)
        for (int dtype = 0; dtype < CAKE_N_KEPT; dtype++) {
            const int *shape = shapes[s / COUNT(rows)];
            int n_out = shape[0], n_in = shape[1], n_row = rows[s % COUNT(rows)];
            matrix m = matrix_open(op, (cake_dtype)dtype, n_out, n_in);
            cake_weight w = pack(op->oracle, m.raw, (cake_dtype)dtype, n_out, n_in);
            float *x = random_floats((size_t)(n_row * n_in), 5), *bias = random_floats((size_t)n_out, 6);
            float *a = random_floats((size_t)(n_row * n_out), 7);
            float *b = copy_floats(a, (size_t)(n_row * n_out));
            call mine = product(op, a, x, &m.w, n_row), ref = product(op->oracle, b, x, &w, n_row);
            mine.bias = ref.bias = bias;
            mine.residual = a;
            ref.residual = b;
            run_linear(1, &mine);
            run_linear(1, &ref);
            CU_ASSERT(same_bits(a, b, (size_t)(n_row * n_out)));
            free(a);
            free(b);
            free(x);
            free(bias);
            free(w.data);
            matrix_close(&m);
        }
}

static void test_linear_ref(void)
{
    for_tables(linear_against_ref);
}

/* All up to `few`, and then some. */
static int next_size(int n_row, int few)
{
    static const int more[] = {9, 17, 41, 100};
    for (int i = 0; i < COUNT(more) && n_row >= few; i++)
        if (n_row < more[i])
            return more[i];
    return n_row < few ? n_row + 1 : n_row + 412;
}

/* Row t of a product of n_row rows has the bits of the product of row t alone, whoever computes it. */
static void linear_rows(const cake_kernels *op)
{
    enum { N_OUT = 137, N_IN = 1061, MOST = 512 };
    const int few = is_slow(op) ? 3 : 40, most = is_slow(op) ? 100 : MOST;
    for (int dtype = 0; dtype < CAKE_N_KEPT; dtype++) {
        matrix m = matrix_open(op, (cake_dtype)dtype, N_OUT, N_IN);
        float *x = random_floats((size_t)MOST * N_IN, 8), *out = random_floats((size_t)MOST * N_OUT, 9);
        float *alone = random_floats((size_t)MOST * N_OUT, 10), *bias = random_floats(N_OUT, 11);
        for (int t = 0; t < most; t++) {
            call c = product(op, alone + t * N_OUT, x + t * N_IN, &m.w, 1);
            c.bias = bias;
            run_linear(1, &c);
        }
        for (int n_row = 1; n_row <= most; n_row = next_size(n_row, few))
            for (int team = is_executed(op) ? 2 : 0; team < (is_executed(op) ? 3
                                                             : n_row > 40    ? 2
                                                                             : COUNT(team_sizes));
                 team++) {
                /* The last rows of x, so that a row also stands in different places of a call. */
                const int64_t first = most - n_row;
                call c = product(op, out, x + first * N_IN, &m.w, n_row);
                c.bias = bias;
                memset(out, 0xFF, (size_t)(n_row * N_OUT) * sizeof *out);
                run_linear(team_sizes[team], &c);
                if (!same_bits(out, alone + first * N_OUT, (size_t)(n_row * N_OUT))) {
                    printf("  %s %s: %d rows, team of %d\n", op->name, cake_dtype_name((cake_dtype)dtype),
                           n_row, team_sizes[team]);
                    CU_FAIL("a row's bits depend on its company");
                }
            }
        free(alone);
        free(bias);
        free(out);
        free(x);
        matrix_close(&m);
    }
}

/* Products of many rows, which tables cut in several ways by the number of outputs. */
static void linear_many(const cake_kernels *op)
{
    enum { N_IN = 200, MOST = 300 };
    static const int outs[] = {140, 90}, rows[] = {MOST, 256, 200, 129};
    float *x = random_floats((size_t)MOST * N_IN, 8);
    for (int i = 0; i < COUNT(outs) * COUNT(rows); i++) {
        const int n_out = outs[i / COUNT(rows)], n = rows[i % COUNT(rows)];
        const int looked_at[] = {0, 127, 128, n / 2 + 63, n > 256 ? 256 : n - 2, n - 1};
        matrix m = matrix_open(op, i % 3 ? CAKE_BF16 : CAKE_F16, n_out, N_IN);
        float *out = random_floats((size_t)(n * n_out), 9), *alone = random_floats((size_t)n_out, 10);
        call all = product(op, out, x, &m.w, n);
        run_linear(2, &all);
        for (int j = 0; j < COUNT(looked_at); j++) {
            call one = product(op, alone, x + looked_at[j] * N_IN, &m.w, 1);
            run_linear(1, &one);
            CU_ASSERT(same_bits(out + (int64_t)looked_at[j] * n_out, alone, (size_t)n_out));
        }
        free(out);
        free(alone);
        matrix_close(&m);
    }
    free(x);
}

static void test_linear_rows(void)
{
    for_tables(linear_rows);
    for_tables(linear_many);
}

typedef struct rows {
    const cake_kernels *op;
    const cake_weight *w;
    float *out;
    const int32_t *row;
    int n;
    float factor;
} rows;

static void run_gather(const cake_exec *exec, void *arg)
{
    rows *r = arg;
    r->op->gather(exec, r->out, r->w, r->row, r->n, r->factor);
}

static void pack_and_gather(const cake_kernels *op)
{
    for (int s = 0; s < COUNT(shapes); s++)
        for (int dtype = 0; dtype < CAKE_N_KEPT; dtype++) {
            int n_out = shapes[s][0], n_in = shapes[s][1];
            matrix m = matrix_open(op, (cake_dtype)dtype, n_out, n_in);
            size_t bytes = op->weight_bytes(&m.w);
            cake_weight piece = m.w;
            piece.data = cake_alloc(1, bytes);
            size_t row = cake_row_bytes((cake_dtype)dtype, n_in);
            for (int first = n_out, n = 7; first > 0; n = n % 40 + 11) { /* from the end, in uneven pieces */
                n = n < first ? n : first;
                first -= n;
                op->weight_pack(&piece, (char *)m.raw + (size_t)first * row, first, n);
            }
            CU_ASSERT(!memcmp(piece.data, m.w.data, bytes));

            int32_t ids[] = {0, n_out - 1, n_out / 2, n_out - 1, n_out / 3};
            float *out = random_floats((size_t)(COUNT(ids) * n_in), 12);
            rows r = {op, &m.w, out, ids, COUNT(ids), 1};
            cake_exec_run(3, run_gather, &r);
            for (int i = 0; i < COUNT(ids); i++)
                CU_ASSERT(same_bits(out + i * n_in, m.value + (int64_t)ids[i] * n_in, (size_t)n_in));
            r.factor = 55.5F;
            cake_exec_run(2, run_gather, &r);
            for (int i = 0; i < n_in; i++)
                CU_ASSERT(out[i] == 55.5F * m.value[i]);
            free(out);
            free(piece.data);
            matrix_close(&m);
        }
}

static void test_pack_and_gather(void)
{
    for_tables(pack_and_gather);
}

/* Elements of heads that are not x, turned by c's angles, in float64. x: of the same place in c->out. */
static int rope_errors(const call *c, const float *x)
{
    int wrong = 0, half = c->n_rot / 2;
    for (int t = 0; t < c->n_row * c->n_head; t++)
        for (int j = 0; j < c->dim; j++) {
            const float *in = x + t * c->dim;
            double exact = (double)in[j];
            if (j < 2 * half) {
                int k = t / c->n_head * half + j % half;
                double other = j < half ? -(double)in[j + half] : (double)in[j - half];
                exact = exact * (double)c->x[k] + other * (double)c->bias[k];
            }
            wrong += !(fabs((double)c->out[t * c->dim + j] - exact) <= 4 * 0x1p-24);
        }
    return wrong;
}

static void check_rope(const cake_kernels *op)
{
    static const int cases[][2] = {{2, 2},     {8, 8},    {34, 34}, {64, 64}, {88, 88},
                                   {128, 128}, {128, 32}, {7, 6},   {96, 72}, {40, 0}};
    enum { N = 3, HEADS = 5 };
    for (int i = 0; i < COUNT(cases); i++)
        for (int normed = 0; normed < 2; normed++) {
            int dim = cases[i][0], half = cases[i][1] / 2;
            size_t n = (size_t)(N * HEADS * dim);
            float *x = random_floats(n, 16), *out = copy_floats(x, n), *again = copy_floats(x, n);
            float *cosine = random_floats((size_t)(N * half), 17),
                  *sine = random_floats((size_t)(N * half), 18);
            float *norm = random_floats((size_t)dim, 19);
            call c = {
                .op = op, .out = out, .x = cosine, .bias = sine, .n_row = N, .n_head = HEADS, .dim = dim};
            c.n_rot = 2 * half;
            c.residual = normed ? norm : NULL;
            cake_exec_run(1, run_rope, &c);
            if (normed) { /* the same as a norm, then a turn */
                call apart = {.op = op, .out = again, .x = x, .bias = norm, .n_row = N * HEADS, .dim = dim};
                cake_exec_run(1, run_rmsnorm, &apart);
                float *plain = copy_floats(again, n);
                apart = c;
                apart.out = again;
                apart.residual = NULL;
                cake_exec_run(1, run_rope, &apart);
                CU_ASSERT(same_bits(again, out, n));
                CU_ASSERT_EQUAL(rope_errors(&c, plain), 0);
                free(plain);
            } else {
                CU_ASSERT_EQUAL(rope_errors(&c, x), 0);
            }
            for (int team = 0; team < COUNT(team_sizes); team++) {
                memcpy(again, x, n * sizeof *x);
                c.out = again;
                cake_exec_run(team_sizes[team], run_rope, &c);
                CU_ASSERT(same_bits(again, out, n));
            }
            free(x);
            free(out);
            free(again);
            free(cosine);
            free(sine);
            free(norm);
        }
}

static void test_rope(void)
{
    for_tables(check_rope);
}

/* Gates over the whole range, first smooth, then in steps that hit every exponent. */
static float *gates(int n)
{
    float *g = random_floats((size_t)n, 19);
    for (int i = 0; i < n; i++)
        g[i] = i % 2 ? g[i] * 110 : ldexpf(g[i], i % 160 - 140);
    return g;
}

#define ALPHA 1.702F
#define LIMIT 0.6F

/* The gated value in float64; *units: allowed error in units in the last place. */
static double passed(double x, double g, cake_act act, double *units)
{
    *units = 5;
    if (act == CAKE_ACT_CLAMPED) {
        double h = fmin(g, (double)LIMIT), u = fmax(fmin(x, (double)LIMIT), -(double)LIMIT);
        *units += fmin(fabs((double)ALPHA * h), 90); /* of the rounded exponent */
        return (u + 1) * h / (1 + exp(-(double)ALPHA * h));
    }
    if (act == CAKE_ACT_XIELU) {
        double above = (double)ALPHA * g * g, below = (double)LIMIT * (expm1(fmin(g, (double)-1e-6F)) - g);
        *units +=
            g > 0 ? 0 : 4 * (double)LIMIT * fabs(g) / fmax(fabs(below + 0.5 * g), 1e-30); /* cancelled */
        return (g > 0 ? above : below) + 0.5 * g;
    }
    if (act == CAKE_ACT_SILU)
        return x * g / (1 + exp(-g));
    if (act == CAKE_ACT_SIGMOID)
        return x / (1 + exp(-g));
    if (act == CAKE_ACT_GELU_ERF) { /* an absolute error of the integral where it is small, as 1 + erff has */
        const double integral = erfc(-g * M_SQRT1_2) / 2;
        *units += fmin(2 / fmax(integral, 1e-300), 1e300) + g * g;
        return x * g * integral;
    }
    /* e^x is off by |x| units in the last place that x was rounded to; after its overflow all is 0. */
    *units += 3 * fmin(fabs(pow(g, 3)) / 10 + 2, 90);
    return x * g / (1 + exp(-2 * sqrt(2 / M_PI) * (g + 0.044715 * g * g * g)));
}

/* Owned: what a table packs of x [n_row, n_in], as a product with the unit matrix gives it back. */
static float *unpacked(const cake_kernels *op, const float *x, const cake_gate *gate, int n_in, int n_row,
                       int team)
{
    float *unit = cake_alloc((size_t)n_in * (size_t)n_in, sizeof *unit);
    for (int64_t i = 0; i < n_in; i++)
        unit[i * n_in + i] = 1;
    cake_weight w = pack(op, unit, CAKE_F32, n_in, n_in);
    float *out = random_floats((size_t)n_in * (size_t)n_row, 23);
    call c = product(op, out, x, &w, n_row);
    c.gate = gate;
    run_linear(team, &c);
    free(unit);
    free(w.data);
    return out;
}

/* Products of gated rows have the bits of products of y, the gated values. */
static void check_behind_gate(const cake_kernels *op, const float *x, const cake_gate *gate, const float *y,
                              int n_in, int n_row)
{
    enum { N_OUT = 5 };
    for (int dtype = 0; dtype < CAKE_N_KEPT; dtype++) {
        matrix m = matrix_open(op, (cake_dtype)dtype, N_OUT, n_in);
        float *a = random_floats((size_t)(n_row * N_OUT), 24),
              *b = random_floats((size_t)(n_row * N_OUT), 25);
        call gated = product(op, a, x, &m.w, n_row), plain = product(op, b, y, &m.w, n_row);
        gated.gate = gate;
        run_linear(1, &plain);
        for (int team = 0; team < COUNT(team_sizes); team++) {
            memset(a, 0xFF, (size_t)(n_row * N_OUT) * sizeof *a);
            run_linear(team_sizes[team], &gated);
            CU_ASSERT(same_bits(a, b, (size_t)(n_row * N_OUT)));
        }
        free(a);
        free(b);
        matrix_close(&m);
    }
}

static void check_gates(const cake_kernels *op)
{
    static const int sizes[][2] = {
        /* n_in, n_row */ {1, 40}, {7, 1}, {40, 3}, {257, 14}, {1100, 2}, {520, 5}};
    for (int i = 0; i < COUNT(sizes); i++)
        for (int act = CAKE_ACT_SILU; act <= (op->oracle ? CAKE_ACT_XIELU : CAKE_ACT_SIGMOID); act++) {
            int n_in = sizes[i][0], n_row = sizes[i][1], n = n_in * n_row, wrong = 0;
            float *x = random_floats((size_t)n, 20), *g = gates(n);
            cake_gate gate = {.g = g, .act = (cake_act)act, .param = {ALPHA, LIMIT, 0.5F, -1e-6F}};
            float *y = unpacked(op, x, &gate, n_in, n_row, 1);
            for (int j = 0; j < n; j++) {
                double units, exact = passed((double)x[j], (double)g[j], (cake_act)act, &units);
                wrong += !(fabs((double)y[j] - exact) <= units * 0x1p-24 * fabs(exact) + 0x1p-110);
            }
            CU_ASSERT_EQUAL(wrong, 0);
            check_behind_gate(op, x, &gate, y, n_in, n_row);
            free(x);
            free(g);
            free(y);
        }
}

static void test_gates(void)
{
    for_tables(check_gates);
}

static void check_odd_values(const cake_kernels *op)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-45f, -0.0f, 0};
    enum { N = 40 };
    float x[N], out[N], ones[N];
    for (int i = 0; i < N; i++) {
        x[i] = odd[i % COUNT(odd)];
        ones[i] = 1;
    }
    for (int act = CAKE_ACT_SILU; act <= CAKE_ACT_SIGMOID; act++) {
        bool open = act != CAKE_ACT_SIGMOID;
        float *passing = unpacked(op, ones, &(cake_gate){.g = x, .act = (cake_act)act}, 1, COUNT(odd), 1);
        CU_ASSERT(isnan(passing[0]) && passing[1] == (open ? INFINITY : 1));
        CU_ASSERT(passing[3] == (open ? 3e38f : 1) && fabsf(passing[4]) < 1 &&
                  passing[7] == (open ? 0 : 0.5f));
        free(passing);
    }
    call c = {.op = op, .out = out, .x = x, .bias = ones, .n_row = 5, .n_head = 1, .dim = 8};
    cake_exec_run(1, run_rmsnorm, &c);
    CU_ASSERT(isnan(out[0]));
    for (int dtype = 0; dtype < CAKE_N_KEPT; dtype++) {
        matrix m = matrix_open(op, (cake_dtype)dtype, 3, N);
        call row = product(op, out, x, &m.w, 1);
        run_linear(1, &row);
        CU_ASSERT(isnan(out[0]) && isnan(out[1]) && isnan(out[2]));
        matrix_close(&m);
    }
}

static void test_odd_values(void)
{
    for_tables(check_odd_values);
}

typedef struct rows_call {
    const cake_kernels *op;
    cake_row *rows;
    float *x, *to;
    const int32_t *from;
    int n, dim;
    bool ends, back;
} rows_call;

static void run_mark_nonfinite(const cake_exec *exec, void *arg)
{
    rows_call *c = arg;
    c->op->mark_nonfinite(exec, c->rows, c->x, c->n, c->dim, CAKE_ROW_NONFINITE(3), c->ends);
}

static void run_move_rows(const cake_exec *exec, void *arg)
{
    rows_call *c = arg;
    c->op->move_rows(exec, c->to, c->x, c->from, c->n, c->dim, c->back);
}

/* The first non-finite layer of a row stays; after the last layer rows without output may be anything. */
static void check_rows(const cake_kernels *op)
{
    enum { N = 5, DIM = 300 };
    static const int32_t from[N] = {7, 0, 3, 4, 9};
    float *x = random_floats(10 * DIM, 41), *to = random_floats(10 * DIM, 42);
    for (int ends = 0; ends < 2; ends++)
        for (int team = 1; team <= 3; team += 2) {
            cake_row row[N] = {[1] = {.no_output = 1}, [2] = {.nonfinite = 1}};
            float *y = copy_floats(x, N * DIM);
            y[DIM + 17] = y[2 * DIM] = INFINITY;
            y[4 * DIM - 1] = NAN;
            rows_call c = {.op = op, .rows = row, .x = y, .n = N, .dim = DIM, .ends = ends};
            cake_exec_run(team, run_mark_nonfinite, &c);
            CU_ASSERT(!row[0].nonfinite && row[1].nonfinite == (ends ? 0 : CAKE_ROW_NONFINITE(3)) &&
                      row[2].nonfinite == 1);
            CU_ASSERT(row[3].nonfinite == CAKE_ROW_NONFINITE(3) && !row[4].nonfinite);
            c = (rows_call){.op = op, .x = x, .to = to, .from = from, .n = N, .dim = DIM};
            cake_exec_run(team, run_move_rows, &c);
            for (int i = 0; i < N; i++)
                CU_ASSERT(same_bits(to + i * DIM, x + from[i] * DIM, DIM));
            memset(y, 0, N * DIM * sizeof *y);
            c = (rows_call){.op = op, .x = y, .to = to, .from = from, .n = N, .dim = DIM, .back = true};
            cake_exec_run(team, run_move_rows, &c);
            for (int i = 0; i < N; i++)
                CU_ASSERT(same_bits(to + from[i] * DIM, y, DIM));
            free(y);
        }
    free(x);
    free(to);
}

static void test_rows(void)
{
    for_tables(check_rows);
}

static void test_levels(void)
{
    CU_ASSERT_EQUAL(cake_kernels_level("ref"), 0);
    CU_ASSERT_EQUAL(cake_kernels_level("nonsense"), -1);
    CU_ASSERT_PTR_NULL(cake_kernels_at(-1));
    CU_ASSERT_PTR_NULL(cake_kernels_at(cake_kernels_best() + 1));
    for (int level = 0; level <= cake_kernels_best(); level++) {
        const bool runs = cake_kernels_up_to(level) >> level;
        CU_ASSERT_EQUAL(cake_kernels_at(level) != NULL, runs);
        if (runs)
            CU_ASSERT_EQUAL(cake_kernels_level(cake_kernels_at(level)->name), level);
    }
    CU_ASSERT(cake_kernels_at(0) && cake_kernels_at(cake_kernels_best()));
    CU_ASSERT_PTR_EQUAL(cake_kernels_at(cake_kernels_exact())->oracle, &cake_kernels_ref);
}

/* Every half of both kinds, floats of all sizes and kinds, any number of them at any place, as plain C
 * converts them. */
static void check_convert(const cake_kernels *op)
{
    enum { N = 70000 };
    float *in = cake_alloc(N, sizeof *in), *floats = cake_alloc(N, sizeof *floats);
    char *want = cake_alloc(N, sizeof(float)), *got = cake_alloc(N, sizeof(float));
    int bad = 0;
    for (int from = 0; from < CAKE_N_DTYPE; from++)
        for (int to = 0; to < CAKE_N_DTYPE; to++)
            for (int n = N; n > 0; n = n > 40 ? 40 : n - 1) {
                uint64_t random = (uint64_t)n;
                for (int i = 0; i < n; i++) {
                    uint32_t bits = (uint32_t)next_random(&random);
                    uint16_t half = (uint16_t)i;
                    if (from == CAKE_F32)
                        memcpy(&in[i], &bits, sizeof bits);
                    else
                        memcpy((char *)in + 2 * i, &half, sizeof half);
                }
                cake_to_f32(floats, in, (cake_dtype)from, n);
                cake_from_f32(want, floats, (cake_dtype)to, n);
                size_t bytes = (size_t)n * cake_dtype_bytes((cake_dtype)to);
                memset(got, 0x55, N * sizeof(float));
                op->convert(got, (cake_dtype)to, in, (cake_dtype)from, n);
                bad += memcmp(got, want, bytes) != 0;
                bad += bytes < N * sizeof(float) && got[bytes] != 0x55;
            }
    CU_ASSERT_EQUAL(bad, 0);
    free(in);
    free(floats);
    free(want);
    free(got);
}

static void test_convert(void)
{
    for_tables(check_convert);
}

int main(void)
{
    static const suite_test tests[] = {
        {"levels: names and what this CPU can run", test_levels},
        {"linear: float64, all dtypes, bias, residual, in place", test_linear_double},
        {"linear: the bits of ref in every table", test_linear_ref},
        {"linear: a row's bits do not depend on its company", test_linear_rows},
        {"weights: packed in pieces, gathered exactly", test_pack_and_gather},
        {"weights: converted to the bit", test_convert},
        {"rope: float64, partial, with and without norm, any team", test_rope},
        {"gates of what is packed: float64, the bits of what passed them, any team", test_gates},
        {"NaN and infinities go through", test_odd_values},
        {"rows that are not finite, and that move", test_rows},
    };
    return SUITE_MAIN("kernels", tests);
}
