/* SPDX-License-Identifier: Apache-2.0
 *
 * Prompt rows go to a fake cuBLASLt (fake_cublaslt.c) and others to our own kernel: right sums, and the same
 * bits as for the row alone.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "kernels/cuda/cublaslt.h"
#include "kernels/cuda/cuda.h"
#include "tests/suite.h"

enum { MOST = 210 };

static uint32_t state = 1;

static float next(void)
{
    state = state * 1664525 + 1013904223;
    return (float)(int32_t)state * 0x1p-31F;
}

/* A matrix, rows and what belongs to them. */
typedef struct rig {
    cake_weight w;
    float *matrix, *x, *bias, *residual; /* rounded to the dtype: [n_out, n_in], [MOST, n_in] */
    cake_row rows[MOST];
} rig;

static float *floats(size_t n)
{
    float *at = malloc(n * sizeof *at);
    for (size_t i = 0; i < n; i++)
        at[i] = next();
    return at;
}

static void *memory(size_t bytes)
{
    return memset(aligned_alloc(CAKE_ALIGN, cake_arena_round(bytes)), 0, bytes);
}

static void round_to(float *x, cake_dtype dtype, size_t n)
{
    uint16_t word;
    for (size_t i = 0; i < n; i++) {
        cake_from_f32(&word, &x[i], dtype, 1);
        cake_to_f32(&x[i], &word, dtype, 1);
    }
}

static rig open_rig(cake_dtype dtype, int n_out, int n_in)
{
    const size_t size = (size_t)n_out * (size_t)n_in;
    rig r = {.w = {.dtype = dtype, .n_out = n_out, .n_in = n_in},
             .matrix = floats(size),
             .x = floats((size_t)MOST * (size_t)n_in),
             .bias = floats((size_t)n_out),
             .residual = floats((size_t)MOST * (size_t)n_out)};
    round_to(r.matrix, dtype, size);
    round_to(r.x, dtype, (size_t)MOST * (size_t)n_in);
    uint16_t *half = malloc(size * sizeof *half);
    cake_from_f32(half, r.matrix, dtype, (int64_t)size);
    r.w.data = memory(cake_kernels_cuda.weight_bytes(&r.w));
    cake_kernels_cuda.weight_pack(&r.w, half, 0, n_out);
    free(half);
    return r;
}

static void close_rig(rig *r)
{
    free(r->w.data);
    free(r->matrix);
    free(r->x);
    free(r->bias);
    free(r->residual);
}

/* Rows [first, first + n), of kinds that rows has; owned [n, n_out]. */
static float *multiply(rig *r, int first, int n, bool bias, bool residual, bool in_place)
{
    const cake_exec alone = {.rank = 0, .size = 1};
    const size_t row = (size_t)r->w.n_out;
    float *out = malloc((size_t)n * row * sizeof *out), *rest = r->residual + (size_t)first * row;
    void *packed = memory(cake_kernels_cuda.input_bytes(r->w.dtype, r->w.n_in, n));
    if (in_place)
        memcpy(out, rest, (size_t)n * row * sizeof *out);
    cake_kernels_cuda.set_rows(r->rows + first, n);
    cake_kernels_cuda.input_pack(&alone, packed, r->x + (int64_t)first * r->w.n_in, NULL, r->w.dtype,
                                 r->w.n_in, n);
    cake_kernels_cuda.linear(&alone, out, packed, &r->w, bias ? r->bias : NULL,
                             !residual  ? NULL
                             : in_place ? out
                                        : rest,
                             n);
    cake_kernels_cuda.set_rows(NULL, 0);
    free(packed);
    return out;
}

static void check_sums(const rig *r, const float *out, int first, int n, bool bias, bool residual)
{
    const int n_in = r->w.n_in, n_out = r->w.n_out;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n_out; j++) {
            double sum = bias ? (double)r->bias[j] : 0, size = fabs(sum);
            for (int k = 0; k < n_in; k++) {
                double term =
                    (double)r->x[(int64_t)(first + i) * n_in + k] * (double)r->matrix[(int64_t)j * n_in + k];
                sum += term;
                size += fabs(term);
            }
            sum += residual ? (double)r->residual[(int64_t)(first + i) * n_out + j] : 0;
            if (!(fabs((double)out[(int64_t)i * n_out + j] - sum) <= 1e-6 * (size + 2)))
                CU_FAIL("a sum is off");
        }
}

/* Kinds in slices of some lengths; prompts begin if `prompts`. */
static void set_kinds(rig *r, int group, bool prompts)
{
    for (int i = 0; i < MOST; i++)
        r->rows[i].kind = (i / group % 2 == 0) == prompts ? CAKE_ROW_PROMPT
                          : i % 3                         ? CAKE_ROW_GENERATED
                                                          : CAKE_ROW_REPLAYED;
}

static void check_company(rig *r)
{
    for (int way = 0; way < 8; way++) {
        const bool bias = way & 1, residual = way & 2, in_place = residual && way & 4;
        float *all = multiply(r, 0, MOST, bias, residual, in_place);
        check_sums(r, all, 0, MOST, bias, residual);
        static const int begins[] = {0, 1, 63, 64, 70, 130, 199}, counts[] = {1, 2, 63, 64, 65, 11};
        for (int i = 0; i < 7; i++)
            for (int j = 0; j < 6; j++) {
                int n = counts[(i + j + way) % 6];
                n = begins[i] + n <= MOST ? n : MOST - begins[i];
                float *some = multiply(r, begins[i], n, bias, residual, in_place);
                CU_ASSERT_EQUAL(memcmp(some, all + (size_t)begins[i] * (size_t)r->w.n_out,
                                       (size_t)n * (size_t)r->w.n_out * sizeof *all),
                                0);
                free(some);
                j += 2; /* some of them */
            }
        free(all);
    }
}

static void test_company(void)
{
    static const struct {
        cake_dtype dtype;
        int n_out, n_in, group;
    } cases[] = {{CAKE_BF16, 33, 70, 1000}, {CAKE_BF16, 16, 64, 37}, {CAKE_F16, 21, 40, 5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rig r = open_rig(cases[i].dtype, cases[i].n_out, cases[i].n_in);
        set_kinds(&r, cases[i].group, i != 1);
        check_company(&r);
        close_rig(&r);
    }
}

/* The bits show which kernel ran: sums of four k at a time differ from sums of one at a time. */
static void test_ways(void)
{
    rig r = open_rig(CAKE_BF16, 40, 500);
    set_kinds(&r, 1000, true);
    float *prompt = multiply(&r, 0, 100, false, false, false);
    set_kinds(&r, 1000, false);
    float *other = multiply(&r, 0, 100, false, false, false);
    CU_ASSERT_NOT_EQUAL(memcmp(prompt, other, 100 * 40 * sizeof *other), 0);
    cake_buf why = {0};
    static const char *const useless[] = {"split", "company"};
    set_kinds(&r, 1000, true);
    for (int i = 0; i < 2; i++) {
        setenv("CAKE_TEST_LT", useless[i], 1);
        cake_cublaslt_close();
        CU_ASSERT(cake_cublaslt_open(&why) > 0);
        float *own = multiply(&r, 0, 100, false, false, false);
        CU_ASSERT_EQUAL(memcmp(own, other, 100 * 40 * sizeof *other), 0);
        free(own);
    }
    setenv("CAKE_TEST_LT", "absent", 1);
    cake_cublaslt_close();
    CU_ASSERT(cake_cublaslt_open(&why) == 0 && strstr(why.data, "absent"));
    float *without = multiply(&r, 0, 100, false, false, false);
    CU_ASSERT_EQUAL(memcmp(without, other, 100 * 40 * sizeof *other), 0);
    unsetenv("CAKE_TEST_LT");
    CU_ASSERT(cake_cublaslt_open(&why) > 0);
    cake_buf_free(&why);
    free(prompt);
    free(other);
    free(without);
    close_rig(&r);
}

static void test_failure(void)
{
    rig r = open_rig(CAKE_BF16, 16, 32);
    set_kinds(&r, 1000, true);
    cake_kernels_cuda.select_algorithm(&r.w);
    setenv("CAKE_TEST_LT", "fails", 1);
    free(multiply(&r, 0, 5, false, false, false));
    unsetenv("CAKE_TEST_LT");
    CU_ASSERT_EQUAL(cake_kernels_cuda.memory->check(), CAKE_ERR_FATAL);
    close_rig(&r);
}

int main(void)
{
    static const suite_test tests[] = {
        {"the bits of the row alone, float64", test_company},
        {"which rows go where", test_ways},
        {"a library that fails", test_failure},
    };
    cake_buf why = {0};
    if (!cake_cublaslt_open(&why))
        return 1;
    int status = SUITE_MAIN("product", tests);
    cake_cublaslt_close();
    cake_buf_free(&why);
    return status;
}
