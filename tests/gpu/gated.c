/* SPDX-License-Identifier: Apache-2.0
 *
 * Both products of a gated MLP at once (cake_kernels.gated), against the two of them.
 */
#include "kernels/cuda/layout.h"
#include "tests/matrices.h"

/* A gated MLP's two products and their packing at once. */
typedef struct pair {
    const cake_kernels *op;
    const cake_weight *gate, *up;
    const float *bias[2];
    void *input, *to, *wanted;
    float *sums[2];
    cake_act act;
    int n_tok;
    bool done;
} pair;

static void run_pair(const cake_exec *exec, void *arg)
{
    pair *p = arg;
    const int n_out = p->gate->n_out;
    const cake_dtype dtype = p->gate->dtype;
    const cake_gate gate = {p->sums[0], p->act};
    p->op->linear(exec, p->sums[0], p->input, p->gate, p->bias[0], NULL, p->n_tok);
    p->op->linear(exec, p->sums[1], p->input, p->up, p->bias[1], NULL, p->n_tok);
    p->op->input_pack(exec, p->wanted, p->sums[1], &gate, dtype, n_out, p->n_tok);
    p->done =
        p->op->gated(exec, p->to, p->input, p->gate, p->bias[0], p->up, p->bias[1], p->act, dtype, p->n_tok);
}

static void check_pair(const cake_kernels *op, cake_dtype dtype, int n_out, int n_in, int n_tok, int seed)
{
    const size_t n = (size_t)n_out * (size_t)n_tok, bytes = (size_t)n_tok * cake_cuda_step(dtype, n_out);
    matrix gate = matrix_open(op, dtype, n_out, n_in), up = matrix_open(op, dtype, n_out, n_in);
    float *x = random_floats((size_t)(n_in * n_tok), (uint64_t)seed), *bias = random_floats((size_t)n_out, 5);
    pair p = {op,
              &gate.w,
              &up.w,
              {seed % 2 ? bias : NULL, seed % 3 ? bias : NULL},
              .input = aligned_alloc(64, op->input_bytes(dtype, n_in, n_tok)),
              .to = random_floats(n, 6),
              .wanted = aligned_alloc(64, op->input_bytes(dtype, n_out, n_tok)),
              .sums = {random_floats(n, 7), random_floats(n, 8)},
              .act = (cake_act)(seed % 3),
              .n_tok = n_tok};
    ((uint16_t *)up.w.data)[0] ^= 0x1300; /* they differ */
    op->input_pack(&(cake_exec){.size = 1}, p.input, x, NULL, dtype, n_in, n_tok);
    cake_exec_run(1, run_pair, &p);
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
    static const int sizes[][3] = {/* n_out, n_in, n_tok */ {1, 40, 2},
                                   {40, 88, 3},
                                   {16, 33, 9},
                                   {100, 300, 17},
                                   {33, 64, 70},
                                   {70, 40, 33}};
    for (int i = 0; i < COUNT(sizes) && op->gated; i++)
        for (int dtype = 0; dtype < CAKE_N_KEPT; dtype++)
            check_pair(op, (cake_dtype)dtype, sizes[i][0], sizes[i][1], sizes[i][2], 3 * i + dtype);
}

static void test_pairs(void)
{
    for_tables(check_pairs);
}

int main(void)
{
    static const suite_test tests[] = {
        {"the bits of two products, and of packing behind a gate", test_pairs}};
    return SUITE_MAIN("gated", tests);
}
