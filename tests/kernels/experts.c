/* SPDX-License-Identifier: Apache-2.0
 *
 * The router against float64, and grouped products against products of each row alone: how rows are dealt to
 * experts must not show in the bits.
 */
#include <math.h>

#include "formats.h"
#include "kernels/experts.h"

enum { N_EXPERT = 6, MOST = 90, CHOSEN = 3 };

/* Loads of experts: the choices of row t. */
typedef enum load { RANDOM, ALL_ON_FEW, ONE_EACH, HOT, N_LOAD } load;

static void deal(load kind, int n_row, int32_t *expert)
{
    uint64_t random = 5;
    for (int t = 0; t < n_row; t++) {
        int first = kind == RANDOM     ? (int)(next_random(&random) % (N_EXPERT - CHOSEN + 1))
                    : kind == ONE_EACH ? t % (N_EXPERT - CHOSEN + 1)
                    : kind == HOT      ? t % 10 == 3
                                       : 2;
        for (int j = 0; j < CHOSEN; j++)
            expert[t * CHOSEN + j] = first + j;
    }
}

typedef struct call_grouped {
    const cake_kernels *op;
    cake_groups groups;
    const float *x;
    const cake_gate *gate;
    const cake_expert_product *product;
    int n;
    void *input;
    bool gather;
} call_grouped;

static void run_grouped(const cake_exec *exec, void *arg)
{
    call_grouped *g = arg;
    const cake_weight *w = &g->product->experts->w;
    g->op->input_pack_grouped(exec, g->input, g->x, g->gate, w->dtype, w->n_in, &g->groups, g->gather);
    cake_exec_barrier(exec);
    g->op->linear_grouped(exec, g->product, g->n, g->input, &g->groups);
}

static cake_groups groups_open(int n_row, int chosen, int n_expert)
{
    return (cake_groups){.expert = malloc((size_t)n_expert * sizeof(int32_t)),
                         .first = malloc((size_t)(n_expert + 1) * sizeof(int32_t)),
                         .row = malloc((size_t)(n_row * chosen) * sizeof(int32_t)),
                         .sorted = malloc((size_t)(n_row * chosen) * sizeof(int32_t)),
                         .stride = chosen};
}

static void groups_close(cake_groups *g)
{
    free(g->expert);
    free(g->first);
    free(g->row);
    free(g->sorted);
}

/* Matrices of all experts, one behind the other. */
static cake_experts experts_open(const cake_kernels *op, cake_dtype dtype, const cake_format *format,
                                 int n_out, int n_in, const float *bias, uint64_t seed)
{
    cake_experts x = {
        .n = N_EXPERT, .bias = bias, .w = {.n_out = n_out, .n_in = n_in, .dtype = dtype, .format = format}};
    x.step = (int64_t)op->weight_bytes(&x.w);
    x.w.data = aligned_alloc(64, (size_t)x.step * N_EXPERT);
    CU_ASSERT_PTR_NOT_NULL_FATAL(x.w.data);
    memset(x.w.data, 0, (size_t)x.step * N_EXPERT);
    for (int e = 0; e < N_EXPERT; e++) {
        float *value = random_floats((size_t)(n_out * n_in), seed + (uint64_t)e);
        void *raw = format ? rows_of(format, n_out, n_in) : as_rows(value, n_out, n_in, dtype);
        cake_weight w = x.w;
        w.data = (char *)x.w.data + e * x.step;
        op->weight_pack(&w, raw, 0, n_out);
        free(raw);
        free(value);
    }
    return x;
}

/* Row `from` of x by its expert's matrix alone. */
static void alone(const cake_kernels *op, const cake_experts *experts, int e, const float *x,
                  const cake_gate *gate, float *out)
{
    cake_weight w = experts->w;
    w.data = (char *)w.data + e * experts->step;
    call c = product(op, out, x, &w, 1);
    c.gate = gate;
    c.bias = experts->bias ? experts->bias + e * w.n_out : NULL;
    run_linear(1, &c);
}

/* How many sorted rows differ from the row alone. */
static int differ(const call_grouped *g, const float *out, int i, const int32_t *expert)
{
    const cake_experts *experts = g->product[i].experts;
    int n_out = experts->w.n_out, n_in = experts->w.n_in, wrong = 0;
    float *want = random_floats((size_t)n_out, 3);
    for (int j = 0; j < g->groups.n_sorted; j++) {
        int sorted = g->groups.sorted[j], from = g->gather ? j / CHOSEN : sorted;
        cake_gate gate = g->gate ? *g->gate : (cake_gate){0};
        gate.g += g->gate ? from * n_in : 0;
        alone(g->op, experts, expert[j], g->x + from * n_in, g->gate ? &gate : NULL, want);
        wrong += !same_bits(out + (int64_t)sorted * n_out, want, (size_t)n_out);
    }
    free(want);
    return wrong;
}

static void check_products(const cake_kernels *op, cake_dtype dtype, const cake_format *format, load kind,
                           int n_row, int n_in, bool gated)
{
    enum { N_OUT = 75 };
    cake_router router = {.n_expert = N_EXPERT, .n_chosen = CHOSEN};
    int32_t expert[MOST * CHOSEN];
    float *bias = random_floats(N_EXPERT * N_OUT, 8), *x = random_floats((size_t)(MOST * CHOSEN * n_in), 9);
    float *g = random_floats((size_t)(MOST * CHOSEN * n_in), 10);
    float *out[2] = {random_floats(MOST * CHOSEN * N_OUT, 11), random_floats(MOST * CHOSEN * N_OUT, 12)};
    cake_experts one = experts_open(op, dtype, format, N_OUT, n_in, bias, 100),
                 two = experts_open(op, dtype, format, N_OUT, n_in, NULL, 200);
    cake_expert_product product[2] = {{out[0], &one}, {out[1], &two}};
    cake_gate gate = {.g = g, .act = CAKE_ACT_SILU};
    call_grouped c = {
        .op = op, .x = x, .gate = gated ? &gate : NULL, .product = product, .n = 2, .gather = !gated};
    c.groups = groups_open(n_row, CHOSEN, N_EXPERT);
    deal(kind, n_row, expert);
    cake_groups_sort(&c.groups, expert, n_row, &router);
    c.input = aligned_alloc(64, op->input_bytes(dtype, n_in, n_row * CHOSEN));
    CU_ASSERT_PTR_NOT_NULL_FATAL(c.input);
    for (int team = 0; team < COUNT(team_sizes); team++) {
        memset(out[0], 0xFF, (size_t)(n_row * CHOSEN * N_OUT) * sizeof(float));
        cake_exec_run(team_sizes[team], run_grouped, &c);
        int wrong = differ(&c, out[0], 0, expert) + differ(&c, out[1], 1, expert);
        if (wrong)
            printf("  %s %s: load %d, %d rows of %d, team of %d: %d differ\n", op->name,
                   cake_dtype_name(dtype), (int)kind, n_row, n_in, team_sizes[team], wrong);
        CU_ASSERT_EQUAL(wrong, 0);
        if (is_slow(op))
            break;
    }
    groups_close(&c.groups);
    free(c.input);
    free(one.w.data);
    free(two.w.data);
    free(out[0]);
    free(out[1]);
    free(bias);
    free(x);
    free(g);
}

/* Elements of each type, integer codes, 8-bit floats whose sums are scaled, and others. */
enum { SCALED = CAKE_N_INPUT, DEQUANTIZED, N_FORM };

static cake_dtype form_dtype(int form)
{
    return form < CAKE_N_INPUT ? (cake_dtype)form : form == SCALED ? CAKE_BF16 : CAKE_F32;
}

static const cake_format *form_format(int form)
{
    return form < CAKE_N_KEPT            ? NULL
           : form_dtype(form) == CAKE_Q8 ? &grouped[3]
           : form == SCALED              ? &grouped[0]
                                         : &grouped[9];
}

static void grouped_products(const cake_kernels *op)
{
    static const int rows[] = {1, 2, 13, MOST};
    for (int form = 0; form < N_FORM; form++)
        for (int kind = 0; kind < N_LOAD; kind++)
            for (int n = 0; n < COUNT(rows); n++)
                if (!is_slow(op) || n < 3)
                    check_products(op, form_dtype(form), form_format(form), (load)kind, rows[n],
                                   n % 2 ? 70 : 1040, kind % 2);
}

static void test_grouped_products(void)
{
    for_tables(grouped_products);
}

/* More rows of one expert than are multiplied at a time. */
static void grouped_hot(const cake_kernels *op)
{
    check_products(op, CAKE_I8, NULL, HOT, MOST, 3000, false);
    check_products(op, CAKE_Q8, &grouped[3], HOT, MOST, 3000, false);
    check_products(op, CAKE_F32, NULL, HOT, MOST, 5000, false);
    check_products(op, CAKE_F32, &grouped[0], HOT, MOST, 3000, false);
}

static void test_grouped_hot(void)
{
    grouped_hot(cake_kernels_at(cake_kernels_best()));
}

/* ---- sorting */

static void test_sort(void)
{
    static const int32_t expert[] = {1, 4, 0, 4, 1, 2};
    static const int32_t row[] = {1, 0, 2, 2, 0, 1}, sorted[] = {1, 4, 0, 5, 2, 3}, first[] = {0, 1, 3, 4, 6};
    static const int32_t present[] = {0, 1, 2, 4};
    cake_groups g = groups_open(3, 2, 5);
    cake_groups_sort(&g, expert, 3, &(cake_router){.n_expert = 5, .n_chosen = 2});
    CU_ASSERT_EQUAL(g.n, 4);
    CU_ASSERT_EQUAL(g.n_sorted, 6);
    CU_ASSERT(!memcmp(g.row, row, sizeof row) && !memcmp(g.sorted, sorted, sizeof sorted));
    CU_ASSERT(!memcmp(g.first, first, sizeof first) && !memcmp(g.expert, present, sizeof present));
    cake_expert_use use = {.rows = 3},
                    all = {.visits = 1, .distinct = 5, .min_rows = 1, .max_rows = 4, .rows = 2};
    cake_expert_use_visit(&use, &g, 5); /* expert 3 has no row */
    CU_ASSERT(use.visits == 1 && use.distinct == 4 && use.min_rows == 0 && use.max_rows == 2);
    CU_ASSERT(use.mean_rows == 6.0 / 5);
    cake_expert_use_merge(&all, &use);
    CU_ASSERT(all.visits == 2 && all.distinct == 9 && all.min_rows == 1 && all.max_rows == 6 &&
              all.rows == 5);
    groups_close(&g);
}

/* ---- combining */

typedef struct combining {
    const cake_kernels *op;
    float *out;
    const float *y, *weight, *residual;
    cake_groups groups;
    int n_row, dim;
} combining;

static void run_combine(const cake_exec *exec, void *arg)
{
    combining *c = arg;
    c->op->combine(exec, c->out, c->y, &c->groups, c->weight, c->residual, c->n_row, c->dim);
}

static void check_combine(const cake_kernels *op)
{
    enum { N = 5, DIM = 37 };
    int32_t expert[N * CHOSEN];
    deal(RANDOM, N, expert);
    float *y = random_floats(N * CHOSEN * DIM, 1), *weight = random_floats(N * CHOSEN, 2);
    float *residual = random_floats(N * DIM, 3), *out = copy_floats(residual, N * DIM);
    float *plain = random_floats(N * DIM, 4);
    combining c = {op, out, y, weight, out, groups_open(N, CHOSEN, N_EXPERT), N, DIM};
    cake_groups_sort(&c.groups, expert, N, &(cake_router){.n_expert = N_EXPERT, .n_chosen = CHOSEN});
    cake_exec_run(2, run_combine, &c);
    c.out = plain;
    c.residual = NULL;
    cake_exec_run(3, run_combine, &c);
    for (int t = 0; t < N; t++)
        for (int i = 0; i < DIM; i++) {
            float sum = 0;
            for (int j = 0; j < CHOSEN; j++)
                sum = fmaf(weight[t * CHOSEN + j], y[c.groups.sorted[t * CHOSEN + j] * DIM + i], sum);
            CU_ASSERT(plain[t * DIM + i] == sum);
            CU_ASSERT(out[t * DIM + i] == sum + residual[t * DIM + i]);
        }
    groups_close(&c.groups);
    free(y);
    free(weight);
    free(residual);
    free(out);
    free(plain);
}

static void test_combine(void)
{
    for_tables(check_combine);
}

/* ---- the router */

/* The choice as the definition has it, in float64, by looking for each best one anew. */
static void choose_double(const cake_router *r, const float *score, bool *chosen, double *weight)
{
    static double value[CAKE_MAX_EXPERTS], pick[CAKE_MAX_EXPERTS];
    double sum = 0, max = -INFINITY;
    int n = r->n_expert, size = n / r->n_group;
    for (int e = 0; e < n; e++)
        max = fmax(max, (double)score[e]);
    for (int e = 0; e < n; e++)
        sum += exp((double)score[e] - max);
    for (int e = 0; e < n; e++) {
        double s = (double)score[e];
        value[e] = r->score == CAKE_ROUTER_SOFTMAX         ? exp(s - max) / sum
                   : r->score == CAKE_ROUTER_SIGMOID       ? 1 / (1 + exp(-s))
                   : r->score == CAKE_ROUTER_SQRT_SOFTPLUS ? sqrt(log1p(exp(s)))
                                                           : s;
        pick[e] = value[e] + (r->bias ? (double)r->bias[e] : 0);
        chosen[e] = false;
    }
    for (int g = 0; g < r->n_group && r->n_group > r->n_group_chosen; g++) { /* how many groups are better */
        double total[CAKE_MAX_CHOSEN];
        int better = 0;
        for (int h = 0; h < r->n_group; h++) {
            double a = -INFINITY, b = -INFINITY;
            for (int i = 0; i < size; i++) {
                double v = pick[h * size + i];
                b = v > a ? a : fmax(b, v);
                a = fmax(a, v);
            }
            total[h] = r->group_best == 2 ? a + b : a;
        }
        for (int h = 0; h < r->n_group; h++)
            better += total[h] > total[g] || (total[h] == total[g] && h < g);
        for (int i = 0; better >= r->n_group_chosen && i < size; i++)
            chosen[g * size + i] = true; /* never to be chosen: removed below */
    }
    bool never[CAKE_MAX_EXPERTS];
    memcpy(never, chosen, (size_t)n);
    memset(chosen, 0, (size_t)n);
    sum = 0;
    for (int j = 0; j < r->n_chosen; j++) {
        int best = -1;
        for (int e = 0; e < n; e++)
            if (!never[e] && !chosen[e] && (best < 0 || pick[e] > pick[best]))
                best = e;
        chosen[best] = true;
    }
    max = -INFINITY;
    for (int e = 0; e < n; e++)
        max = chosen[e] ? fmax(max, value[e]) : max;
    for (int e = 0; e < n; e++) {
        if (r->score == CAKE_ROUTER_TOPK_SOFTMAX)
            value[e] = exp(value[e] - max);
        sum += chosen[e] ? value[e] : 0;
    }
    for (int e = 0; e < n; e++) {
        weight[e] = value[e];
        if (r->score == CAKE_ROUTER_TOPK_SOFTMAX)
            weight[e] /= sum;
        if (r->renormalise)
            weight[e] /= (r->score == CAKE_ROUTER_TOPK_SOFTMAX ? 1 : sum) + (double)r->epsilon;
        weight[e] *= (double)r->scale * (r->expert_scale ? (double)r->expert_scale[e] : 1);
    }
}

typedef struct routing {
    const cake_router *router;
    float *score, *weight;
    int32_t *expert;
    int n_row;
} routing;

static void run_router(const cake_exec *exec, void *arg)
{
    routing *r = arg;
    cake_router_choose(exec, r->router, r->score, r->expert, r->weight, r->router->n_chosen, r->n_row);
}

static void check_router(const cake_router *router)
{
    enum { N = 40 };
    int n = router->n_expert, k = router->n_chosen;
    float *score = random_floats((size_t)(N * n), 77), *kept = copy_floats(score, (size_t)(N * n));
    float *weight = random_floats((size_t)(N * k), 78);
    int32_t *expert = malloc((size_t)(N * k) * sizeof *expert);
    bool *chosen = malloc((size_t)n);
    double *want = malloc((size_t)n * sizeof *want);
    for (int i = 0; i < N * n; i++)
        kept[i] = score[i] = score[i] * 6;
    cake_exec_run(3, run_router, &(routing){router, score, weight, expert, N});
    for (int t = 0; t < N; t++) {
        choose_double(router, kept + t * n, chosen, want);
        for (int j = 0; j < k; j++) {
            int e = expert[t * k + j];
            CU_ASSERT_FATAL(e >= 0 && e < n);
            CU_ASSERT(chosen[e] && (!j || expert[t * k + j - 1] < e));
            CU_ASSERT(fabs((double)weight[t * k + j] - want[e]) <= 1e-5 * fabs(want[e]) + 1e-7);
        }
    }
    free(score);
    free(kept);
    free(weight);
    free(expert);
    free(chosen);
    free(want);
}

static void test_router(void)
{
    float *bias = random_floats(256, 4), *scale = random_floats(256, 5);
    for (int score = 0; score < CAKE_N_ROUTER_SCORE; score++)
        for (int i = 0; i < 16; i++) {
            cake_router r = {.n_expert = i % 2 ? 24 : 7,
                             .n_chosen = i % 4 + 1,
                             .score = (cake_router_score)score,
                             .n_group = i % 2 ? 4 : 1,
                             .n_group_chosen = i % 2 ? 1 + i % 3 : 1,
                             .group_best = i < 8 ? 1 : 2,
                             .renormalise = i & 4,
                             .epsilon = i & 8 ? 1e-20F : 0,
                             .scale = i & 2 ? 2.5F : 1,
                             .bias = i & 1 ? bias : NULL,
                             .expert_scale = i & 8 ? scale : NULL};
            check_router(&r);
        }
    free(bias);
    free(scale);
}

/* Equal scores, and scores that are not finite: the choice is valid, and the former go to the lowest ids. */
static void test_router_ties(void)
{
    enum { N = 9 };
    float score[5][N] = {{0}, {1, 2, 2, 2, 1, 2}, {NAN, NAN, 1}, {INFINITY, -INFINITY}, {0}};
    int32_t expert[5 * 3];
    float weight[5 * 3];
    for (int e = 0; e < N; e++)
        score[4][e] = NAN;
    cake_router r = {
        .n_expert = N, .n_chosen = 3, .n_group = 1, .n_group_chosen = 1, .group_best = 1, .scale = 1};
    cake_router_choose(&(cake_exec){0, 1, NULL}, &r, score[0], expert, weight, 3, 5);
    CU_ASSERT(expert[0] == 0 && expert[1] == 1 && expert[2] == 2);
    CU_ASSERT(expert[3] == 1 && expert[4] == 2 && expert[5] == 3);
    for (int i = 6; i < 15; i++)
        CU_ASSERT(expert[i] >= 0 && expert[i] < N && !isfinite(weight[i]));
}

int main(void)
{
    static const suite_test tests[] = {
        {"sorting by expert", test_sort},
        {"grouped products: the bits of each row alone", test_grouped_products},
        {"grouped products: one hot expert", test_grouped_hot},
        {"combining", test_combine},
        {"the router against float64", test_router},
        {"the router: ties, and scores that are not finite", test_router_ties},
    };
    return SUITE_MAIN("experts", tests);
}
