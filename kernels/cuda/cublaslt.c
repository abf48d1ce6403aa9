/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a prompt's packed rows, a matrix. Out: their product, by cuBLASLt. Invariant: each shape of matrix uses
 * one algorithm for any number of rows, the one that the library suggests for REPRESENTATIVE rows. It sums a
 * whole row of k in one block of threads (no split of k, no reduction), rows are padded to multiples of
 * CAKE_PRODUCT_ROWS, and tiles are independent: so a row's bits do not depend on other rows. This is also
 * tested with the first matrix of each shape, because the library only promises that the same call gives the
 * same bits. The sum comes first, then the bias, then the residual.
 *
 * The library is column-major: out [n_row, n_out] is its D of n_out rows, W [n_out, width] its A, transposed,
 * and x [n_row, width] its B.
 */
#include "kernels/cuda/cublaslt.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "kernels/cuda/cublaslt_api.h"
#include "kernels/cuda/layout.h"
#include "kernels/cuda/memory.h"

enum {
    CHOICES = 16,
    REPRESENTATIVE = 2048,
/* Maximum rows of a trial; the last CAKE_PRODUCT_ROWS of them are also multiplied alone. */
#ifdef CAKE_EXECUTOR
    TRIED = 192
#else
    TRIED = REPRESENTATIVE
#endif
};

/* The workspace: first the library's part, too small for it to keep partial sums of REPRESENTATIVE rows
 * there; after it outputs that are moved elsewhere later. */
#define OWN  ((size_t)1 << 20)
#define REST (CAKE_CUDA_WORKSPACE - OWN)

/* A shape of matrices, and the algorithm for it. */
typedef struct plan {
    cake_dtype dtype;
    int n_out, n_in;
    bool usable;
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulAlgo_t algo;
} plan;

static struct {
    const cake_lt *lt;
    cublasLtHandle_t handle;
    plan *plans;
    int n;
} product;

cudaStream_t cake_cuda_stream(void); /* defined in memory.c */

int cake_cublaslt_open(cake_buf *why)
{
    const cake_lt *lt = cake_cublaslt_api_find(why);
    if (!lt)
        return 0;
    size_t version = lt->GetVersion();
    cublasStatus_t status =
        version / 10000 == CUBLAS_VER_MAJOR ? lt->Create(&product.handle) : CUBLAS_STATUS_NOT_SUPPORTED;
    if (status != CUBLAS_STATUS_SUCCESS) {
        cake_buf_addf(why, "cuBLASLt %zu.%zu.%zu, built for %d: %s", version / 10000, version / 100 % 100,
                      version % 100, CUBLAS_VER_MAJOR, lt->GetStatusString(status));
        return 0;
    }
    product.lt = lt;
    return (int)version;
}

void cake_cublaslt_describe(cake_buf *out)
{
    cake_buf why = {0};
    const cake_lt *lt = cake_cublaslt_api_find(&why);
    size_t version = lt ? lt->GetVersion() : 0;
    if (lt)
        cake_buf_addf(out, "cuBLASLt %zu.%zu.%zu", version / 10000, version / 100 % 100, version % 100);
    else
        cake_buf_addf(out, "no cuBLASLt: %s", why.data);
    cake_buf_free(&why);
}

static void drop(plan *p)
{
    if (p->product)
        product.lt->MatmulDescDestroy(p->product);
    if (p->a)
        product.lt->MatrixLayoutDestroy(p->a);
    if (p->b)
        product.lt->MatrixLayoutDestroy(p->b);
    if (p->d)
        product.lt->MatrixLayoutDestroy(p->d);
}

void cake_cublaslt_close(void)
{
    for (int i = 0; i < product.n; i++)
        drop(&product.plans[i]);
    if (product.handle)
        product.lt->Destroy(product.handle);
    free(product.plans);
    memset(&product, 0, sizeof product);
}

/* Whether the algorithm sums a whole row of k in one block of threads. */
static bool sums_whole(const cublasLtMatmulAlgo_t *algo)
{
    int32_t splits = 0;
    uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_MASK;
    size_t written;
    const cake_lt *lt = product.lt;
    return lt->MatmulAlgoConfigGetAttribute(algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &splits, sizeof splits,
                                            &written) == CUBLAS_STATUS_SUCCESS &&
           lt->MatmulAlgoConfigGetAttribute(algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme,
                                            sizeof scheme, &written) == CUBLAS_STATUS_SUCCESS &&
           splits <= 1 && scheme == CUBLASLT_REDUCTION_SCHEME_NONE;
}

static bool set_rows(const plan *p, int n)
{
    const cake_lt *lt = product.lt;
    const uint64_t columns = (uint64_t)n;
    return lt->MatrixLayoutSetAttribute(p->b, CUBLASLT_MATRIX_LAYOUT_COLS, &columns, sizeof columns) ==
               CUBLAS_STATUS_SUCCESS &&
           lt->MatrixLayoutSetAttribute(p->d, CUBLASLT_MATRIX_LAYOUT_COLS, &columns, sizeof columns) ==
               CUBLAS_STATUS_SUCCESS;
}

/* Multiplies n rows, a multiple of CAKE_PRODUCT_ROWS. added: out is added to the product. */
static bool multiply(const plan *p, const cublasLtMatmulAlgo_t *algo, float *out, const char *x,
                     const cake_weight *w, bool added, int n)
{
    const cake_lt *lt = product.lt;
    const float alpha = 1, beta = added ? 1 : 0;
    return set_rows(p, n) &&
           lt->Matmul(product.handle, p->product, &alpha, w->data, p->a, x, p->b, &beta, out, p->d, out, p->d,
                      algo, cake_cuda_workspace(), OWN, cake_cuda_stream()) == CUBLAS_STATUS_SUCCESS;
}

/* The rest of the workspace during a trial: packed rows, their products, and the products of the last of them
 * alone. */
typedef struct trial {
    int n;            /* rows */
    size_t row, sums; /* bytes of a packed row; of a row's sums */
    char *x, *among, *alone;
} trial;

static bool make_trial(trial *t, const plan *p)
{
    t->row = cake_cuda_step(p->dtype, p->n_in);
    t->sums = (size_t)p->n_out * sizeof(float);
    const size_t each = CAKE_PRODUCT_ROWS * (t->row + t->sums), alone = CAKE_PRODUCT_ROWS * t->sums,
                 room = REST > alone ? (REST - alone) / each : 0, most = TRIED / CAKE_PRODUCT_ROWS;
    t->n = (int)(room < most ? room : most) * CAKE_PRODUCT_ROWS;
    if (t->n < 2 * CAKE_PRODUCT_ROWS)
        return false;
    t->x = (char *)cake_cuda_workspace() + OWN;
    t->among = t->x + (size_t)t->n * t->row;
    t->alone = t->among + (size_t)t->n * t->sums;
    /* random numbers of both signs, between 1 and 2 in size, whose digits are all in use in either dtype */
    uint32_t state = 1;
    const size_t n = (size_t)t->n * t->row / sizeof(uint16_t);
    uint16_t *x = cake_alloc(n, sizeof *x);
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525 + 1013904223;
        x[i] = p->dtype == CAKE_BF16 ? (uint16_t)(0x3F80 | (state >> 16 & 0x807F))
                                     : (uint16_t)(0x3C00 | (state >> 16 & 0x83FF));
    }
    cake_cuda_memory.upload(t->x, x, n * sizeof *x);
    free(x);
    return true;
}

/* Products of the rows in the middle of a trial, on the host, from GPU memory. */
static bool has_products(const char *products, const char *expected, size_t bytes)
{
    char *got = cake_alloc(1, bytes);
    cake_cuda_memory.download(got, products, bytes);
    const bool same = !memcmp(got, expected, bytes);
    free(got);
    return same;
}

/* Whether the rows in the middle have the bits that they have alone (expected) as those from `place` on of n,
 * also where the product is added to zeros. */
static bool same_among(const plan *p, const cublasLtMatmulAlgo_t *algo, const cake_weight *w, const trial *t,
                       int n, int place, const char *expected)
{
    const int first = t->n / 2 / CAKE_PRODUCT_ROWS * CAKE_PRODUCT_ROWS - place;
    const size_t bytes = CAKE_PRODUCT_ROWS * t->sums;
    char *const products = t->among + (size_t)place * t->sums, *const zeros = cake_alloc(1, bytes);
    bool same = true;
    for (int added = 0; added < 2 && same && first >= 0 && first + n <= t->n; added++) {
        if (added)
            cake_cuda_memory.upload(products, zeros, bytes);
        same = multiply(p, algo, (float *)(void *)t->among, t->x + (size_t)first * t->row, w, added, n) &&
               has_products(products, expected, bytes);
    }
    free(zeros);
    return same;
}

/* Whether rows have the same bits alone as first, in the middle and last among others. */
static bool keeps_bits(const plan *p, const cublasLtMatmulAlgo_t *algo, const cake_weight *w, const trial *t)
{
    const int sizes[] = {CAKE_PRODUCT_ROWS, 2 * CAKE_PRODUCT_ROWS, 3 * CAKE_PRODUCT_ROWS, 1088, t->n};
    const int middle = t->n / 2 / CAKE_PRODUCT_ROWS * CAKE_PRODUCT_ROWS;
    const size_t bytes = CAKE_PRODUCT_ROWS * t->sums;
    char *expected = cake_alloc(1, bytes);
    bool same = multiply(p, algo, (float *)(void *)t->alone, t->x + (size_t)middle * t->row, w, false,
                         CAKE_PRODUCT_ROWS);
    if (same)
        cake_cuda_memory.download(expected, t->alone, bytes);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && same; i++) {
        const int n = sizes[i], last = n - CAKE_PRODUCT_ROWS;
        same = same_among(p, algo, w, t, n, 0, expected) && same_among(p, algo, w, t, n, last, expected) &&
               (n == t->n ? same_among(p, algo, w, t, n, middle, expected)
                          : same_among(p, algo, w, t, n, last / 2 / CAKE_PRODUCT_ROWS * CAKE_PRODUCT_ROWS,
                                       expected));
    }
    free(expected);
    return same;
}

static void log_choice(const plan *p, int choice, int rows)
{
    static const cublasLtMatmulAlgoConfigAttributes_t wanted[] = {
        CUBLASLT_ALGO_CONFIG_ID, CUBLASLT_ALGO_CONFIG_TILE_ID, CUBLASLT_ALGO_CONFIG_STAGES_ID};
    int32_t value[3] = {-1, -1, -1};
    size_t written;
    for (int i = 0; i < 3; i++)
        product.lt->MatmulAlgoConfigGetAttribute(&p->algo, wanted[i], &value[i], sizeof *value, &written);
    cake_log(CAKE_INFO, "kernels",
             "cuBLASLt: matrices of %d x %d: choice %d for %d rows, algorithm %d, tile %d, stages %d",
             p->n_out, p->n_in, choice, rows, value[0], value[1], value[2]);
}

/* The first of the library's choices that passes the trial with w: of those for many rows, then for few. */
static bool choose(plan *p, const cake_weight *w, cublasLtMatmulPreference_t preference)
{
    const cake_lt *lt = product.lt;
    const int rows_asked[] = {REPRESENTATIVE, CAKE_PRODUCT_ROWS};
    const size_t room = OWN;
    const uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_NONE;
    /* alignment of addresses: of matrices and packed rows; of rows of out */
    const uint32_t operands = CAKE_ALIGN, rows = p->n_out % 4 ? sizeof(float) : 4 * sizeof(float);
    const struct {
        cublasLtMatmulPreferenceAttributes_t attribute;
        const void *value;
        size_t size;
    } wishes[] = {
        {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room},
        {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &scheme, sizeof scheme},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &operands, sizeof operands},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &operands, sizeof operands},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &rows, sizeof rows},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &rows, sizeof rows},
    };
    bool asked = true;
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes && asked; i++)
        asked = lt->MatmulPreferenceSetAttribute(preference, wishes[i].attribute, wishes[i].value,
                                                 wishes[i].size) == CUBLAS_STATUS_SUCCESS;
    trial t;
    asked = asked && make_trial(&t, p);
    for (int turn = 0; turn < 2 && asked; turn++) {
        cublasLtMatmulHeuristicResult_t found[CHOICES];
        int n = 0;
        if (!set_rows(p, rows_asked[turn]) ||
            lt->MatmulAlgoGetHeuristic(product.handle, p->product, p->a, p->b, p->d, p->d, preference,
                                       CHOICES, found, &n) != CUBLAS_STATUS_SUCCESS)
            continue;
        for (int i = 0; i < n; i++)
            if (found[i].state == CUBLAS_STATUS_SUCCESS && found[i].workspaceSize <= room &&
                sums_whole(&found[i].algo) && keeps_bits(p, &found[i].algo, w, &t)) {
                p->algo = found[i].algo;
                log_choice(p, i, rows_asked[turn]);
                return true;
            }
    }
    return false;
}

static bool select_algorithm(plan *p, const cake_weight *w)
{
    const cake_lt *lt = product.lt;
    const cudaDataType_t type = p->dtype == CAKE_BF16 ? CUDA_R_16BF : CUDA_R_16F;
    const uint64_t width = (uint64_t)cake_cuda_width(p->dtype, p->n_in), n_out = (uint64_t)p->n_out;
    const cublasOperation_t transposed = CUBLAS_OP_T;
    cublasLtMatmulPreference_t preference = NULL;
    bool made =
        (size_t)p->n_out * CAKE_PRODUCT_ROWS * sizeof(float) <= REST &&
        lt->MatmulDescCreate(&p->product, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS &&
        lt->MatmulDescSetAttribute(p->product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed) ==
            CUBLAS_STATUS_SUCCESS &&
        lt->MatrixLayoutCreate(&p->a, type, width, n_out, (int64_t)width) == CUBLAS_STATUS_SUCCESS &&
        lt->MatrixLayoutCreate(&p->b, type, width, REPRESENTATIVE, (int64_t)width) == CUBLAS_STATUS_SUCCESS &&
        lt->MatrixLayoutCreate(&p->d, CUDA_R_32F, n_out, REPRESENTATIVE, (int64_t)n_out) ==
            CUBLAS_STATUS_SUCCESS &&
        lt->MatmulPreferenceCreate(&preference) == CUBLAS_STATUS_SUCCESS && choose(p, w, preference);
    if (preference)
        lt->MatmulPreferenceDestroy(preference);
    return made;
}

/* The plan of w's shape; NULL: no library, or no suitable algorithm. */
static plan *plan_of(const cake_weight *w)
{
    if (!product.lt || (w->dtype != CAKE_BF16 && w->dtype != CAKE_F16))
        return NULL;
    for (int i = 0; i < product.n; i++) {
        plan *p = &product.plans[i];
        if (p->dtype == w->dtype && p->n_out == w->n_out && p->n_in == w->n_in)
            return p->usable ? p : NULL;
    }
    product.plans = cake_grow(product.plans, (size_t)product.n + 1, sizeof *product.plans);
    plan *p = &product.plans[product.n++];
    *p = (plan){.dtype = w->dtype, .n_out = w->n_out, .n_in = w->n_in};
    p->usable = select_algorithm(p, w);
    if (!p->usable)
        cake_log(CAKE_WARN, "kernels",
                 "cuBLASLt has no product of prompts with matrices of %d x %d that sums a row of k at once, "
                 "alone as among others; our own kernel has them, which is slower",
                 w->n_out, w->n_in);
    return p->usable ? p : NULL;
}

void cake_cublaslt_select_algorithm(const cake_weight *w)
{
    plan_of(w);
}

bool cake_cublaslt_linear(float *out, const void *x, const cake_weight *w, const float *bias,
                          const float *residual, int n_row)
{
    plan *p = plan_of(w);
    if (!p)
        return false;
    const size_t step = cake_cuda_step(w->dtype, w->n_in), row = (size_t)w->n_out;
    float *aside = (float *)(void *)((char *)cake_cuda_workspace() + OWN);
    const int most = (int)(REST / sizeof(float) / row / CAKE_PRODUCT_ROWS * CAKE_PRODUCT_ROWS);
    /* without a bias, which must be added first, cuBLASLt adds the residual; it must be in out before */
    const bool added = residual && !bias, here = !residual || residual == out;
    for (int first = 0, n; first < n_row; first += n) {
        const int left = n_row - first;
        const bool direct = left >= CAKE_PRODUCT_ROWS && (added || !residual) && here;
        n = direct ? left / CAKE_PRODUCT_ROWS * CAKE_PRODUCT_ROWS : left < most ? left : most;
        const int whole = (n + CAKE_PRODUCT_ROWS - 1) / CAKE_PRODUCT_ROWS * CAKE_PRODUCT_ROWS;
        float *to = out + (size_t)first * row, *sum = direct ? to : aside;
        const float *rest = residual ? residual + (size_t)first * row : NULL;
        if (added && !direct)
            cake_cuda_memory.copy(aside, rest, (size_t)n * row * sizeof(float));
        if (!multiply(p, &p->algo, sum, (const char *)x + (size_t)first * step, w, added, whole))
            cake_cuda_failed("a product of cuBLASLt");
        if (!direct || bias)
            cake_cuda_finish(to, sum, bias, added ? NULL : rest, w->n_out, n);
    }
    return true;
}
