/* SPDX-License-Identifier: Apache-2.0
 *
 * Fused operations (the end of cake_kernels), compared with the single ones.
 */
#include "kernels/cuda/layout.h"
#include "tests/kernels/matrices.h"

/* A gated MLP's two products and their packing at once. */
typedef struct pair {
    const cake_kernels *op;
    const cake_weight *gate, *up;
    const float *bias[2];
    void *input, *to, *wanted;
    float *sums[2];
    cake_act act;
    int n_row;
    bool done;
} pair;

static void run_pair(const cake_exec *exec, void *arg)
{
    pair *p = arg;
    const int n_out = p->gate->n_out;
    const cake_dtype dtype = p->gate->dtype;
    const cake_gate gate = {.g = p->sums[0], .act = p->act};
    p->op->linear(exec, p->sums[0], p->input, p->gate, p->bias[0], NULL, p->n_row);
    p->op->linear(exec, p->sums[1], p->input, p->up, p->bias[1], NULL, p->n_row);
    p->op->input_pack(exec, p->wanted, p->sums[1], &gate, dtype, n_out, p->n_row);
    p->done = p->op->mlp_gate_up(exec, p->to, p->input, p->gate, p->bias[0], p->up, p->bias[1], p->act, dtype,
                                 p->n_row);
}

static void check_pair(const cake_kernels *op, cake_dtype dtype, int n_out, int n_in, int n_row, int seed)
{
    const size_t n = (size_t)n_out * (size_t)n_row, bytes = (size_t)n_row * cake_cuda_step(dtype, n_out);
    matrix gate = matrix_open(op, dtype, n_out, n_in), up = matrix_open(op, dtype, n_out, n_in);
    float *x = random_floats((size_t)(n_in * n_row), (uint64_t)seed), *bias = random_floats((size_t)n_out, 5);
    pair p = {op,
              &gate.w,
              &up.w,
              {seed % 2 ? bias : NULL, seed % 3 ? bias : NULL},
              .input = aligned_alloc(64, op->input_bytes(dtype, n_in, n_row)),
              .to = random_floats(n, 6),
              .wanted = aligned_alloc(64, op->input_bytes(dtype, n_out, n_row)),
              .sums = {random_floats(n, 7), random_floats(n, 8)},
              .act = (cake_act)(seed % 3),
              .n_row = n_row};
    ((uint16_t *)up.w.data)[0] ^= 0x1300; /* they differ */
    op->input_pack(&(cake_exec){.size = 1}, p.input, x, NULL, dtype, n_in, n_row);
    /* as the program says it of a wave: of generated rows, and at last of some that are a prompt's */
    cake_row *rows = calloc((size_t)n_row, sizeof *rows);
    for (int i = 0; i < n_row; i++)
        rows[i].kind = i % 2 ? CAKE_ROW_GENERATED : CAKE_ROW_REPLAYED;
    op->set_rows(rows, n_row);
    cake_exec_run(1, run_pair, &p);
    rows[n_row / 2].kind = CAKE_ROW_PROMPT;
    op->set_rows(rows, n_row);
    CU_ASSERT(!op->mlp_gate_up(&(cake_exec){.size = 1}, p.to, p.input, &gate.w, NULL, &up.w, NULL, p.act,
                               dtype, n_row));
    op->set_rows(NULL, 0);
    free(rows);
    CU_ASSERT_EQUAL(p.done, (dtype == CAKE_BF16 || dtype == CAKE_F16) && bytes <= n * sizeof(float));
    CU_ASSERT(!p.done || !memcmp(p.to, p.wanted, bytes));
    void *all[] = {x, bias, p.input, p.to, p.wanted, p.sums[0], p.sums[1]};
    for (int i = 0; i < COUNT(all); i++)
        free(all[i]);
    matrix_close(&gate);
    matrix_close(&up);
}

static void check_pairs(const cake_kernels *op)
{
    static const int sizes[][3] = {/* n_out, n_in, n_row */ {1, 40, 2},
                                   {40, 88, 3},
                                   {16, 33, 9},
                                   {100, 300, 17},
                                   {33, 64, 70},
                                   {140, 40, 7},
                                   {130, 64, 140},
                                   {70, 40, 33}};
    for (int i = 0; i < COUNT(sizes); i++)
        for (int dtype = 0; dtype < CAKE_N_KEPT; dtype++)
            check_pair(op, (cake_dtype)dtype, sizes[i][0], sizes[i][1], sizes[i][2], 3 * i + dtype);
}

static void test_pairs(void)
{
    for_tables(check_pairs);
}

enum { NORMED = 11 }; /* rows at most */

typedef struct norm {
    const cake_kernels *op;
    float *x, *weight, *between;
    void *apart, *at_once;
    cake_row marked[2][NORMED]; /* by mark, and at once */
    cake_dtype dtype;
    int dim, n_row;
    bool done;
} norm;

static void run_norm(const cake_exec *exec, void *arg)
{
    norm *n = arg;
    n->op->mark_nonfinite(exec, n->marked[0], n->x, n->n_row, n->dim, CAKE_ROW_NONFINITE(3), false);
    n->op->rmsnorm(exec, n->between, n->x, n->weight, NULL, n->n_row, n->dim, 1e-6F);
    n->op->input_pack(exec, n->apart, n->between, NULL, n->dtype, n->dim, n->n_row);
    n->done = n->op->rmsnorm_pack(exec, n->at_once, n->x, n->weight, n->dtype, n->n_row, n->dim, 1e-6F,
                                  n->marked[1], CAKE_ROW_NONFINITE(3));
}

/* Rows that are not finite in some place, one of them known to be, and one whose sum of squares is not. */
static void break_rows(norm *n)
{
    static const float odd[] = {INFINITY, 1e30F, -NAN, NAN};
    for (int i = 0; i < COUNT(odd) && i < n->n_row - 1; i++)
        n->x[(i + 1) * n->dim + (7 * i + 900) % n->dim] = odd[i];
    for (int i = 0; i < 2 && n->n_row > 4; i++)
        n->marked[i][4].nonfinite = CAKE_ROW_NONFINITE(1);
}

static void check_norms(const cake_kernels *op)
{
    static const int sizes[][2] = {/* dim, n_row */ {1, 1}, {40, NORMED}, {1023, 3}, {1030, 5}};
    for (int i = 0; i < COUNT(sizes); i++)
        for (int dtype = 0; dtype < CAKE_N_KEPT; dtype++) {
            norm n = {.op = op, .dim = sizes[i][0], .n_row = sizes[i][1], .dtype = (cake_dtype)dtype};
            const size_t bytes = op->input_bytes(n.dtype, n.dim, n.n_row), all = (size_t)(n.dim * n.n_row);
            n.x = random_floats(all, 1), n.weight = random_floats((size_t)n.dim, 2);
            n.between = random_floats(all, 3);
            n.apart = aligned_alloc(64, bytes), n.at_once = aligned_alloc(64, bytes);
            memset(n.at_once, 0xA5, bytes);
            break_rows(&n);
            cake_exec_run(1, run_norm, &n);
            CU_ASSERT_EQUAL(n.done, n.dtype != CAKE_I8);
            CU_ASSERT(!n.done || !memcmp(n.marked[0], n.marked[1], sizeof n.marked[0]));
            CU_ASSERT(n.n_row < 2 || n.marked[0][1].nonfinite == CAKE_ROW_NONFINITE(3));
            CU_ASSERT(n.n_row < 3 || !n.marked[0][2].nonfinite);
            CU_ASSERT(!n.done ||
                      !memcmp(n.apart, n.at_once, (size_t)n.n_row * cake_cuda_step(n.dtype, n.dim)));
            void *owned[] = {n.x, n.weight, n.between, n.apart, n.at_once};
            for (int j = 0; j < COUNT(owned); j++)
                free(owned[j]);
        }
}

static void test_norms(void)
{
    for_tables(check_norms);
}

typedef struct products {
    const cake_kernels *op;
    const void *input;
    cake_product at_once[CAKE_PRODUCTS], apart[CAKE_PRODUCTS];
    int n, n_row;
    bool done;
} products;

static void run_products(const cake_exec *exec, void *arg)
{
    products *p = arg;
    for (int i = 0; i < p->n; i++)
        p->op->linear(exec, p->apart[i].out, p->input, p->apart[i].w, p->apart[i].bias, NULL, p->n_row);
    p->done = p->op->linear_multi(exec, p->at_once, p->n, p->input, p->n_row);
}

/* The property in which the last of several matrices differs. */
typedef enum odd { NOTHING, DTYPE, WIDTH } odd;

/* Matrices of 88 inputs, narrow or wide. */
static void check_several(const cake_kernels *op, cake_dtype dtype, bool wide, int n, int n_row, odd other)
{
    enum { N_IN = 88, MOST = 200 };
    static const int n_outs[2][CAKE_PRODUCTS] = {{70, 1, 32, 65}, {130, 128, MOST, 131}};
    int n_out[CAKE_PRODUCTS];
    memcpy(n_out, n_outs[wide], sizeof n_out);
    if (other == WIDTH)
        n_out[n - 1] = n_outs[!wide][n - 1];
    matrix m[CAKE_PRODUCTS];
    float *x = random_floats((size_t)(N_IN * n_row), 4), *bias = random_floats(MOST, 5);
    void *input = aligned_alloc(64, op->input_bytes(CAKE_F32, N_IN, n_row));
    products p = {.op = op, .input = input, .n = n, .n_row = n_row};
    memset(input, 0, op->input_bytes(CAKE_F32, N_IN, n_row));
    op->input_pack(&(cake_exec){.size = 1}, input, x, NULL, dtype, N_IN, n_row);
    for (int i = 0; i < n; i++) {
        bool is_odd = other == DTYPE && i == n - 1;
        m[i] = matrix_open(op, is_odd ? (cake_dtype)((dtype + 1) % CAKE_N_KEPT) : dtype, n_out[i], N_IN);
        p.at_once[i] = p.apart[i] = (cake_product){.w = &m[i].w, .bias = i % 2 ? bias : NULL};
        p.at_once[i].out = random_floats((size_t)(n_out[i] * n_row), 6);
        p.apart[i].out = random_floats((size_t)(n_out[i] * n_row), 7);
    }
    p.n -= other != NOTHING; /* what is apart is of the input's dtype */
    cake_row *rows = calloc((size_t)n_row, sizeof *rows);
    for (int i = 0; i < n_row; i++)
        rows[i].kind = CAKE_ROW_GENERATED;
    op->set_rows(rows, n_row);
    cake_exec_run(1, run_products, &p);
    rows[n_row - 1].kind = CAKE_ROW_PROMPT;
    op->set_rows(rows, n_row);
    CU_ASSERT(!op->linear_multi(&(cake_exec){.size = 1}, p.at_once, p.n, input, n_row));
    op->set_rows(NULL, 0);
    free(rows);
    bool fits = (dtype == CAKE_BF16 || dtype == CAKE_F16) && n_row <= CAKE_CUDA_FEW;
    CU_ASSERT_EQUAL(p.done, fits);
    for (int i = 0; i < p.n && fits; i++)
        CU_ASSERT(same_bits(p.at_once[i].out, p.apart[i].out, (size_t)(n_out[i] * n_row)));
    CU_ASSERT(!other || !op->linear_multi(&(cake_exec){.size = 1}, p.at_once, n, input, n_row));
    for (int i = 0; i < n; i++) {
        free(p.at_once[i].out);
        free(p.apart[i].out);
        matrix_close(&m[i]);
    }
    free(input);
    free(x);
    free(bias);
}

static void check_products(const cake_kernels *op)
{
    for (int dtype = 0; dtype < CAKE_N_KEPT; dtype++)
        for (int n = 1; n <= CAKE_PRODUCTS; n++) {
            check_several(op, (cake_dtype)dtype, n % 2, n, 3 * n, NOTHING);
            check_several(op, (cake_dtype)dtype, n % 2 == 0, n, 7 + n, n > 1 ? WIDTH : NOTHING);
            check_several(op, (cake_dtype)dtype, false, n, 15 + n, n > 1 ? DTYPE : NOTHING);
        }
}

static void test_products(void)
{
    for_tables(check_products);
}

enum { SLOTS = 2, KV_HEADS = 2, Q_HEADS = 3, TOKENS = 5 };

typedef struct turning {
    const cake_kernels *op;
    cake_kv kv[2]; /* apart, at once */
    float *q[2], *k[2], *v;
    const cake_row *rows;
    cake_rope_args rope;
    int n_head;
} turning;

static void run_rope(const cake_exec *exec, void *arg)
{
    turning *t = arg;
    const cake_rope_args *by = &t->rope;
    const int dim = t->kv->head_dim;
    t->op->rope(exec, t->k[0], by->k_norm, by->eps, by->cos, by->sin, TOKENS, KV_HEADS, dim, by->n_rot);
    t->op->kv_store(exec, &t->kv[0], t->k[0], t->v, t->rows, TOKENS);
    if (t->n_head)
        t->op->rope(exec, t->q[0], by->q_norm, by->eps, by->cos, by->sin, TOKENS, t->n_head, dim, by->n_rot);
    CU_ASSERT(t->op->rope_kv_store(exec, &t->kv[1], t->q[1], t->n_head, t->k[1], t->v, by, t->rows, TOKENS));
}

static void check_rope(const cake_kernels *op, cake_dtype dtype, int head_dim, int n_rot, int seed)
{
    static const int32_t table[SLOTS * 2] = {2, 0, 3, 1}; /* pages */
    const size_t page = (size_t)(KV_HEADS * CAKE_PAGE * head_dim), elements = 4 * page,
                 heads = (size_t)(TOKENS * Q_HEADS * head_dim), keys = (size_t)(TOKENS * KV_HEADS * head_dim);
    cake_row rows[TOKENS];
    for (int i = 0; i < TOKENS; i++)
        rows[i] = (cake_row){.slot = i % SLOTS, .pos = CAKE_PAGE - 2 + i};
    float *weight = random_floats((size_t)head_dim, 1),
          *angles = random_floats((size_t)(TOKENS * head_dim), 2);
    turning t = {.op = op,
                 .rows = rows,
                 .v = random_floats(keys, 3),
                 .rope = {.q_norm = seed % 2 ? weight : NULL,
                          .k_norm = seed % 3 ? weight : NULL,
                          .eps = 1e-6F,
                          .cos = angles,
                          .sin = angles + TOKENS * (n_rot / 2),
                          .n_rot = n_rot},
                 .n_head = seed % 4 ? Q_HEADS : 0};
    for (int i = 0; i < 2; i++) {
        t.q[i] = random_floats(heads, 4);
        t.k[i] = random_floats(keys, 5);
        t.kv[i] = (cake_kv){.k = random_floats(elements, 6),
                            .v = random_floats(elements, 7),
                            .page_step = (int64_t)page,
                            .dtype = dtype,
                            .n_kv = KV_HEADS,
                            .head_dim = head_dim,
                            .table = table,
                            .stride = 2};
    }
    cake_exec_run(1, run_rope, &t);
    CU_ASSERT(same_bits(t.q[0], t.q[1], heads));
    CU_ASSERT(!memcmp(t.kv[0].k, t.kv[1].k, elements * sizeof(float)));
    CU_ASSERT(!memcmp(t.kv[0].v, t.kv[1].v, elements * sizeof(float)));
    for (int i = 0; i < 2; i++) {
        free(t.q[i]);
        free(t.k[i]);
        free(t.kv[i].k);
        free(t.kv[i].v);
    }
    free(weight);
    free(angles);
    free(t.v);
}

static void check_turns(const cake_kernels *op)
{
    static const int sizes[][2] = {
        /* head_dim, n_rot */ {2, 2}, {40, 0}, {64, 64}, {96, 72}, {33, 8}, {1026, 64}};
    static const cake_dtype kept[] = {CAKE_F32, CAKE_BF16, CAKE_F16};
    for (int i = 0; i < COUNT(sizes) * 4; i++)
        for (int d = 0; d < COUNT(kept); d++)
            check_rope(op, kept[d], sizes[i / 4][0], sizes[i / 4][1], i % 4 + 3 * d);
}

static void test_turns(void)
{
    for_tables(check_turns);
}

int main(void)
{
    static const suite_test tests[] = {
        {"mlp_gate_up: the bits of two products, and of packing after a gate", test_pairs},
        {"rmsnorm_pack: the bits of a norm, then of packing", test_norms},
        {"linear_multi: the bits of one product after the other", test_products},
        {"rope_kv_store: the bits of rotating heads, then of storing keys and values", test_turns},
    };
    return SUITE_MAIN("fused operations", tests);
}
