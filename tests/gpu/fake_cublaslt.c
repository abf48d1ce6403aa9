/* SPDX-License-Identifier: Apache-2.0
 *
 * A fake cuBLASLt: it checks arguments and order of calls, ends the program if they are wrong, and multiplies
 * in plain C. CAKE_TEST_LT=absent: it is not found; split: all its algorithms split k; company: all sums
 * depend on the number of rows; fails: products fail.
 */
#include "kernels/cuda/cublaslt_api.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/tensor.h"
#include "tests/gpu/stream.h"

#define CHECK(condition) ((condition) ? (void)0 : wrong(#condition, __LINE__))

static void wrong(const char *what, int line)
{
    fprintf(stderr, "tests/gpu/fake_cublaslt.c:%d: not so: %s\n", line, what);
    abort();
}

static bool is_said(const char *what)
{
    const char *said = getenv("CAKE_TEST_LT");
    return said && !strcmp(said, what);
}

typedef struct layout {
    cudaDataType type;
    uint64_t rows, columns;
    int64_t ld;
} layout;

static int open_handles;

static size_t get_version(void)
{
    return CUBLAS_VERSION;
}

static const char *get_status_string(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS ? "all is well" : "it failed";
}

static cublasStatus_t create(cublasLtHandle_t *handle)
{
    *handle = (cublasLtHandle_t)&open_handles;
    open_handles++;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t destroy(cublasLtHandle_t handle)
{
    CHECK(handle == (cublasLtHandle_t)&open_handles && open_handles-- > 0);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t create_product(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
                                     cudaDataType_t scale)
{
    CHECK(compute == CUBLAS_COMPUTE_32F && scale == CUDA_R_32F);
    *desc = calloc(1, sizeof **desc);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t destroy_product(cublasLtMatmulDesc_t desc)
{
    free(desc);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_product(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                                  const void *value, size_t size)
{
    cublasOperation_t operation;
    CHECK(attribute == CUBLASLT_MATMUL_DESC_TRANSA && size == sizeof operation);
    memcpy(&operation, value, size);
    CHECK(operation == CUBLAS_OP_T);
    desc->data[0] = 1;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t create_layout(cublasLtMatrixLayout_t *made, cudaDataType type, uint64_t rows,
                                    uint64_t columns, int64_t ld)
{
    layout *l = calloc(1, sizeof *l);
    CHECK(ld >= (int64_t)rows && rows && columns);
    *l = (layout){type, rows, columns, ld};
    *made = (cublasLtMatrixLayout_t)(void *)l;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t destroy_layout(cublasLtMatrixLayout_t l)
{
    free(l);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_layout(cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t attribute,
                                 const void *value, size_t size)
{
    CHECK(attribute == CUBLASLT_MATRIX_LAYOUT_COLS && size == sizeof(uint64_t));
    memcpy(&((layout *)(void *)l)->columns, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t create_preference(cublasLtMatmulPreference_t *preference)
{
    *preference = calloc(1, sizeof **preference);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t destroy_preference(cublasLtMatmulPreference_t preference)
{
    free(preference);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_preference(cublasLtMatmulPreference_t preference,
                                     cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
                                     size_t size)
{
    (void)value;
    CHECK(size == (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? 8 : 4));
    preference->data[0] |= 1U << attribute;
    return CUBLAS_STATUS_SUCCESS;
}

/* Of the first five algorithms one splits k, one adds afterwards, and three sum in another order: many rows,
 * 128 rows, and where out is added. */
static cublasStatus_t choose(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,
                             cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                             cublasLtMatmulPreference_t preference, int most,
                             cublasLtMatmulHeuristicResult_t *found, int *n)
{
    const layout *x = (const void *)a, *y = (const void *)b, *z = (const void *)d;
    CHECK(open_handles && handle && product->data[0] && c == d && most >= 6);
    for (int i = 0; i <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES; i++) /* all of these have to be said */
        CHECK(i == 0 || i == 2 || i == 4 || preference->data[0] >> i & 1);
    CHECK(x->type == y->type && z->type == CUDA_R_32F && x->rows == y->rows && x->columns == z->rows &&
          y->columns == z->columns);
    memset(found, 0, (size_t)most * sizeof *found);
    for (*n = 0; *n < 6; ++*n) {
        found[*n].algo.data[0] = 77;
        found[*n].algo.data[1] = *n == 0 || is_said("split") ? 4 : 1;
        found[*n].algo.data[2] =
            *n == 1 ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE : CUBLASLT_REDUCTION_SCHEME_NONE;
        found[*n].algo.data[3] = is_said("company") ? 1 : *n >= 2 && *n < 5 ? (uint64_t)*n - 1 : 0;
        found[*n].state = CUBLAS_STATUS_SUCCESS;
    }
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t get_config(const cublasLtMatmulAlgo_t *algo,
                                 cublasLtMatmulAlgoConfigAttributes_t attribute, void *value, size_t size,
                                 size_t *written)
{
    int32_t word = (int32_t)algo->data[attribute == CUBLASLT_ALGO_CONFIG_SPLITK_NUM ? 1 : 2];
    CHECK(algo->data[0] == 77 && size == sizeof word);
    memcpy(value, &word, size);
    *written = size;
    return CUBLAS_STATUS_SUCCESS;
}

static float element(const void *at, cudaDataType type, int64_t i)
{
    const uint16_t *half = at;
    return type == CUDA_R_16BF ? cake_bf16_to_f32(half[i]) : cake_f16_to_f32(half[i]);
}

/* Rows of a matrix in columns, k [x->rows] each, as floats. */
static float *widen(const layout *x, const void *at)
{
    float *all = malloc((size_t)(x->columns * x->rows) * sizeof *all);
    for (int64_t row = 0, i = 0; row < (int64_t)x->columns; row++)
        for (int64_t k = 0; k < (int64_t)x->rows; k++)
            all[i++] = element(at, x->type, row * x->ld + k);
    return all;
}

/* one_by_one: in another order. */
static float sum_of(const float *a, const float *b, int64_t n, bool one_by_one)
{
    float sum[8] = {0};
    int64_t k = 0;
    for (; k + 8 <= n && !one_by_one; k += 8)
        for (int i = 0; i < 8; i++)
            sum[i] += a[k + i] * b[k + i];
    for (; k < n; k++)
        sum[0] += a[k] * b[k];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

/* A requested product, with layouts as of the call. */
typedef struct asked {
    stream_work work;
    const void *a, *b;
    float *d;
    layout x, y, z;
    bool added, other;
} asked;

static bool do_product(stream_work *work)
{
    asked *p = (asked *)work;
    const int64_t n = (int64_t)p->x.rows;
    float *left = widen(&p->x, p->a), *right = widen(&p->y, p->b);
    for (int64_t row = 0; row < (int64_t)p->z.columns; row++)
        for (int64_t column = 0; column < (int64_t)p->z.rows; column++) {
            float sum = sum_of(left + column * n, right + row * n, n, p->other),
                  *to = p->d + row * p->z.ld + column;
            *to = p->added ? sum + *to : sum;
        }
    free(left);
    free(right);
    free(p);
    return true;
}

static cublasStatus_t multiply(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void *alpha,
                               const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                               cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                               cublasLtMatrixLayout_t c_layout, void *d, cublasLtMatrixLayout_t d_layout,
                               const cublasLtMatmulAlgo_t *algo, void *workspace, size_t room,
                               cudaStream_t to)
{
    const layout *x = (const void *)a_layout, *y = (const void *)b_layout, *z = (const void *)d_layout;
    const float times = *(const float *)beta;
    CHECK(open_handles && handle && product && workspace && room && c == d && c_layout == d_layout);
    CHECK(*(const float *)alpha == 1 && (times == 0 || times == 1));
    CHECK(algo->data[0] == 77 && algo->data[1] == 1 && algo->data[2] == 0);
    CHECK(y->columns == z->columns && y->columns % 64 == 0 && (uintptr_t)a % 16 == 0 &&
          (uintptr_t)b % 16 == 0);
    if (is_said("fails"))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    asked *p = malloc(sizeof *p);
    *p = (asked){{do_product},
                 a,
                 b,
                 d,
                 *x,
                 *y,
                 *z,
                 times > 0,
                 algo->data[3] == 1   ? y->columns > 64
                 : algo->data[3] == 2 ? y->columns == 128
                                      : algo->data[3] == 3 && times > 0};
    stream_add((stream *)(void *)to, &p->work);
    return CUBLAS_STATUS_SUCCESS;
}

const cake_lt *cake_cublaslt_api_find(cake_buf *why)
{
    static const cake_lt fake = {.GetVersion = get_version,
                                 .GetStatusString = get_status_string,
                                 .Create = create,
                                 .Destroy = destroy,
                                 .MatmulDescCreate = create_product,
                                 .MatmulDescDestroy = destroy_product,
                                 .MatmulDescSetAttribute = set_product,
                                 .MatrixLayoutCreate = create_layout,
                                 .MatrixLayoutDestroy = destroy_layout,
                                 .MatrixLayoutSetAttribute = set_layout,
                                 .MatmulPreferenceCreate = create_preference,
                                 .MatmulPreferenceDestroy = destroy_preference,
                                 .MatmulPreferenceSetAttribute = set_preference,
                                 .MatmulAlgoGetHeuristic = choose,
                                 .MatmulAlgoConfigGetAttribute = get_config,
                                 .Matmul = multiply};
    if (is_said("absent")) {
        cake_buf_adds(why, "CAKE_TEST_LT is absent");
        return NULL;
    }
    return &fake;
}
