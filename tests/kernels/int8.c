/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices in int8: their rows, and products where they differ from other dtypes. Common tests (teams,
 * numbers of rows, float64, the bits of ref) are in kernels.c.
 */
#include <float.h>
#include <math.h>

#include "matrices.h"

/* Groups of x that int8 cannot represent, next to ordinary ones: the bits of ref, NaN where x has one. */
static void linear_int8_odd(const cake_kernels *op)
{
    static const float odd[] = {NAN,    INFINITY,  -INFINITY,     FLT_MAX, -FLT_MAX,
                                1e-45f, 0x1p-100f, 0x1.fffp-101f, 0,       1e30f};
    enum { N_IN = 3 * CAKE_I8_GROUP - 7, N_OUT = 37, N_TOK = 4 * COUNT(odd) };
    matrix m = matrix_open(op, CAKE_I8, N_OUT, N_IN);
    cake_weight w = pack(op->oracle, m.raw, CAKE_I8, N_OUT, N_IN);
    float *x = random_floats(N_TOK * N_IN, 31);
    for (int t = 0; t < N_TOK; t++)
        for (int k = t / COUNT(odd) * CAKE_I8_GROUP; k < N_IN && k < (t / COUNT(odd) + 1) * CAKE_I8_GROUP;
             k++)
            x[t * N_IN + k] = odd[t % COUNT(odd)] * (k % 3 || t % 2 ? 1 : 0.3f);
    float *a = random_floats(N_TOK * N_OUT, 32), *b = copy_floats(a, N_TOK * N_OUT);
    call mine = product(op, a, x, &m.w, N_TOK), ref = product(op->oracle, b, x, &w, N_TOK);
    run_linear(1, &mine);
    run_linear(1, &ref);
    int wrong = 0;
    for (int i = 0; i < N_TOK * N_OUT; i++) {
        int t = i / N_OUT;
        bool finite = t / COUNT(odd) > 2 || isfinite(odd[t % COUNT(odd)]);
        wrong += finite ? !same_bits(&a[i], &b[i], 1) && !(isnan(a[i]) && isnan(b[i]))
                        : !isnan(a[i]) || !isnan(b[i]);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    free(a);
    free(b);
    free(x);
    free(w.data);
    matrix_close(&m);
}

/* Rows of matrices: of zeros, of one value, of what is too small or not finite. */
static void test_int8_rows(void)
{
    enum { N = CAKE_I8_GROUP + 5 };
    float in[N] = {0}, out[N];
    uint16_t row[N];
    CU_ASSERT_EQUAL(cake_row_bytes(CAKE_I8, N), 2 * 2 + N + N % 2);
    cake_i8_from(row, in, CAKE_F32, N);
    cake_i8_to_f32(out, row, N);
    CU_ASSERT(same_bits(in, out, N));
    in[3] = -1.27f;
    in[4] = 0.635f;
    in[N - 1] = 1e-40f;
    cake_i8_from(row, in, CAKE_F32, N);
    cake_i8_to_f32(out, row, N);
    CU_ASSERT(fabsf(out[3] + 1.27f) < 0.005f && fabsf(out[4] - 0.635f) < 0.005f && out[N - 1] == 0);
    in[N - 1] = FLT_MAX;
    in[3] = INFINITY;
    cake_i8_from(row, in, CAKE_F32, N);
    cake_i8_to_f32(out, row, N);
    CU_ASSERT(isnan(out[3]) && isnan(out[0]) && fabsf(out[N - 1] / FLT_MAX - 1) < 0.005f);
    in[3] = NAN;
    cake_i8_from(row, in, CAKE_F32, N);
    cake_i8_to_f32(out, row, N);
    CU_ASSERT(isnan(out[0]));
}

/* Rows of floats of every kind, and of one size whose scale is rounded in every way there is, as plain C
 * makes them. */
static void check_convert(const cake_kernels *op)
{
    enum { N = 5 * CAKE_I8_GROUP + 7, SCALES = 1 << 14 };
    uint16_t want[N], got[N];
    float in[N], group[CAKE_I8_GROUP] = {0};
    uint64_t random = 7;
    int bad = 0;
    for (int n = N; n > 0; n -= n > 300 ? 31 : 1)
        for (int from = 0; from < CAKE_N_DTYPE; from++) {
            for (int i = 0; i < N; i++) { /* bits of every kind, in groups that are finite but for one */
                uint32_t bits =
                    (uint32_t)next_random(&random) & (i / CAKE_I8_GROUP == 2 ? 0xFFFFFFFF : 0xBBFFBBFF);
                memcpy(&in[i], &bits, sizeof bits);
            }
            memset(got, 0x55, sizeof got);
            cake_i8_from(want, in, (cake_dtype)from, n);
            op->convert(got, CAKE_I8, in, (cake_dtype)from, n);
            size_t bytes = cake_row_bytes(CAKE_I8, n);
            bad += memcmp(got, want, bytes) != 0 || ((char *)got)[bytes] != 0x55;
        }
    for (int i = 0; i < SCALES; i++) {
        uint32_t bits = 0x3F800000 + ((uint32_t)i << 9);
        memcpy(&group[0], &bits, sizeof bits);
        group[1] = -group[0];
        cake_i8_from(want, group, CAKE_F32, CAKE_I8_GROUP);
        op->convert(got, CAKE_I8, group, CAKE_F32, CAKE_I8_GROUP);
        bad += memcmp(got, want, cake_row_bytes(CAKE_I8, CAKE_I8_GROUP)) != 0;
    }
    CU_ASSERT_EQUAL(bad, 0);
}

static void test_convert(void)
{
    for_tables(check_convert);
}

/* So many values of k that not one row of them is quantised at a time; more rows than a tile has. */
static void linear_int8_deep(const cake_kernels *op)
{
    enum { N_IN = 449 * 1024 + 130, N_OUT = 3, N_TOK = 14 };
    matrix m = matrix_open(op, CAKE_I8, N_OUT, N_IN);
    cake_weight w = pack(op->oracle, m.raw, CAKE_I8, N_OUT, N_IN);
    float *x = random_floats((size_t)N_TOK * N_IN, 33);
    float *a = random_floats(N_TOK * N_OUT, 34), *b = copy_floats(a, N_TOK * N_OUT);
    call mine = product(op, a, x, &m.w, N_TOK), ref = product(op->oracle, b, x, &w, N_TOK);
    mine.residual = a;
    ref.residual = b;
    run_linear(2, &mine);
    run_linear(2, &ref);
    CU_ASSERT(same_bits(a, b, N_TOK * N_OUT));
    free(a);
    free(b);
    free(x);
    free(w.data);
    matrix_close(&m);
}

static void test_int8(void)
{
    for_tables(linear_int8_odd);
    for_tables(linear_int8_deep);
}

int main(void)
{
    static const suite_test tests[] = {
        {"rows of matrices: zeros, values that are too small or not finite", test_int8_rows},
        {"rows of matrices: the same from every instruction set", test_convert},
        {"products: the bits of ref where x is too small, too large, not finite, very long", test_int8},
    };
    return SUITE_MAIN("int8", tests);
}
