/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the tests of products: random matrices packed by a table, and calls of its operations by a team.
 */
#ifndef CAKE_TESTS_MATRICES_H
#define CAKE_TESTS_MATRICES_H

#include "kernels/int8.h"
#include "tables.h"

/* A call of linear or of an operation on rows, as cake_exec_run wants it. */
typedef struct call {
    const cake_kernels *op;
    float *out;
    const float *x, *bias, *residual;
    const cake_gate *gate;
    const cake_weight *w;
    void *input; /* x, packed */
    int n_row, n_head, dim, n_rot;
} call;

static inline call product(const cake_kernels *op, float *out, const float *x, const cake_weight *w,
                           int n_row)
{
    return (call){.op = op, .out = out, .x = x, .w = w, .n_row = n_row};
}

static inline void pack_and_multiply(const cake_exec *exec, void *arg)
{
    call *c = arg;
    c->op->input_pack(exec, c->input, c->x, c->gate, c->w->dtype, c->w->n_in, c->n_row);
    cake_exec_barrier(exec);
    c->op->linear(exec, c->out, c->input, c->w, c->bias, c->residual, c->n_row);
}

/* c->out, by a team of that size. */
static inline void run_linear(int team, call *c)
{
    size_t bytes = c->op->input_bytes(c->w->dtype, c->w->n_in, c->n_row);
    CU_ASSERT_EQUAL(bytes % 64, 0);
    c->input = aligned_alloc(64, bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c->input);
    cake_exec_run(team, pack_and_multiply, c);
    free(c->input);
}

typedef struct matrix {
    cake_weight w;
    float *value; /* [n_out, n_in], what the elements hold */
    void *raw;    /* the same in dtype */
} matrix;

static inline cake_weight pack(const cake_kernels *op, const void *raw, cake_dtype dtype, int n_out, int n_in)
{
    cake_weight w = {.n_out = n_out, .n_in = n_in, .dtype = dtype};
    size_t bytes = op->weight_bytes(&w);
    CU_ASSERT_EQUAL(bytes % 64, 0);
    w.data = aligned_alloc(64, bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w.data);
    memset(w.data, 0, bytes);
    op->weight_pack(&w, raw, 0, n_out);
    return w;
}

/* Owned: value [n_out, n_in] as rows that weight_pack takes; each value becomes what the matrix holds. */
static inline void *as_rows(float *value, int n_out, int n_in, cake_dtype dtype)
{
    if (dtype != CAKE_I8)
        return as_dtype(value, (size_t)n_out * (size_t)n_in, dtype);
    size_t bytes = cake_row_bytes(CAKE_I8, n_in);
    char *rows = malloc((size_t)n_out * bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(rows);
    for (int64_t i = 0; i < n_out; i++) {
        cake_i8_from(rows + (size_t)i * bytes, value + i * n_in, CAKE_F32, n_in);
        cake_i8_to_f32(value + i * n_in, rows + (size_t)i * bytes, n_in);
    }
    return rows;
}

static inline matrix matrix_open(const cake_kernels *op, cake_dtype dtype, int n_out, int n_in)
{
    matrix m = {.value = random_floats((size_t)n_out * (size_t)n_in, (uint64_t)(n_out * 1000 + n_in))};
    m.raw = as_rows(m.value, n_out, n_in, dtype);
    m.w = pack(op, m.raw, dtype, n_out, n_in);
    return m;
}

static inline void matrix_close(matrix *m)
{
    free(m->w.data);
    free(m->value);
    free(m->raw);
}

#endif
