/* SPDX-License-Identifier: Apache-2.0
 *
 * The norms of every table: compared with float64, and with themselves in other teams and places.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "matrices.h"

static void run_rmsnorm(const cake_exec *exec, void *arg)
{
    call *c = arg;
    c->op->rmsnorm(exec, c->out, c->x, c->bias, c->residual, c->n_row, c->dim, 1e-6f);
}

static void check_rmsnorm(const cake_kernels *op)
{
    static const int dims[] = {1, 7, 8, 16, 17, 64, 88, 136, 1024, 1031};
    enum { N = 9 };
    for (int d = 0; d < COUNT(dims); d++) {
        int dim = dims[d], wrong = 0;
        float *x = random_floats((size_t)(N * dim), 13), *weight = random_floats((size_t)dim, 14);
        float *out = random_floats((size_t)(N * dim), 15), *again = copy_floats(x, (size_t)(N * dim));
        call c = {.op = op, .out = out, .x = x, .bias = weight, .n_row = N, .dim = dim};
        cake_exec_run(1, run_rmsnorm, &c);
        for (int t = 0; t < N; t++) {
            double sum = 0;
            for (int i = 0; i < dim; i++)
                sum += (double)x[t * dim + i] * (double)x[t * dim + i];
            for (int i = 0; i < dim; i++) {
                double exact = (double)x[t * dim + i] / sqrt(sum / dim + (double)1e-6f) * (double)weight[i];
                wrong += !(fabs((double)out[t * dim + i] - exact) <= (dim / 2 + 8) * 0x1p-24 * fabs(exact));
            }
        }
        CU_ASSERT_EQUAL(wrong, 0);
        float *stream = random_floats((size_t)(N * dim), 16), *sum = copy_floats(stream, (size_t)(N * dim));
        c.out = sum;
        c.residual = sum;
        cake_exec_run(2, run_rmsnorm, &c);
        for (int i = 0; i < N * dim; i++)
            CU_ASSERT(sum[i] == out[i] + stream[i]);
        free(stream);
        free(sum);
        for (int team = 0; team < COUNT(team_sizes); team++) { /* in place, rows from the second on */
            memcpy(again, x, (size_t)(N * dim) * sizeof *x);
            call part = {
                .op = op, .out = again + dim, .x = again + dim, .bias = weight, .n_row = N - 1, .dim = dim};
            cake_exec_run(team_sizes[team], run_rmsnorm, &part);
            CU_ASSERT(same_bits(again + dim, out + dim, (size_t)((N - 1) * dim)));
        }
        free(x);
        free(weight);
        free(out);
        free(again);
    }
}

static void run_layernorm(const cake_exec *exec, void *arg)
{
    const call *c = arg;
    c->op->layernorm(exec, c->out, c->x, c->bias, c->residual, c->n_row, c->dim, 1e-6f);
}

/* The bias of a norm stands in the call's residual. */
static void check_layernorm(const cake_kernels *op)
{
    static const int dims[] = {1, 7, 8, 16, 17, 64, 88, 136, 384, 1031};
    enum { N = 9 };
    for (int d = 0; d < COUNT(dims); d++) {
        const int dim = dims[d];
        int wrong = 0;
        float *x = random_floats((size_t)(N * dim), 13), *weight = random_floats((size_t)dim, 14);
        float *bias = random_floats((size_t)dim, 17), *out = random_floats((size_t)(N * dim), 15);
        for (int i = 0; i < N * dim; i++)
            x[i] += 3; /* a mean that is not 0 */
        call c = {.op = op, .out = out, .x = x, .bias = weight, .residual = bias, .n_row = N, .dim = dim};
        for (int t = 0; t < 2 * N; t++) {
            if (t % N == 0) { /* with a bias, then without one */
                c.residual = t ? NULL : bias;
                cake_exec_run(1, run_layernorm, &c);
            }
            const float *in = x + t % N * dim;
            double mean = 0, square = 0;
            for (int i = 0; i < dim; i++)
                mean += (double)in[i] / dim;
            for (int i = 0; i < dim; i++)
                square += ((double)in[i] - mean) * ((double)in[i] - mean) / dim;
            for (int i = 0; i < dim; i++) {
                const double exact =
                    ((double)in[i] - mean) / sqrt(square + (double)1e-6f) * (double)weight[i] +
                    (t < N ? (double)bias[i] : 0);
                wrong += !(fabs((double)out[t % N * dim + i] - exact) <= 2e-5 * (1 + fabs(exact)));
            }
        }
        CU_ASSERT_EQUAL(wrong, 0);
        for (int team = 0; team < COUNT(team_sizes); team++) { /* in place, rows from the second on */
            float *again = copy_floats(x, (size_t)(N * dim));
            call part = {
                .op = op, .out = again + dim, .x = again + dim, .bias = weight, .n_row = N - 1, .dim = dim};
            cake_exec_run(team_sizes[team], run_layernorm, &part);
            CU_ASSERT(same_bits(again + dim, out + dim, (size_t)((N - 1) * dim)));
            free(again);
        }
        free(x);
        free(weight);
        free(bias);
        free(out);
    }
}

static void test_layernorm(void)
{
    for_tables(check_layernorm);
}

static void test_rmsnorm(void)
{
    for_tables(check_rmsnorm);
}

int main(void)
{
    static const suite_test tests[] = {
        {"rmsnorm: float64, any dim, any team", test_rmsnorm},
        {"layernorm: float64, any dim, any team", test_layernorm},
    };
    return SUITE_MAIN("norms", tests);
}
