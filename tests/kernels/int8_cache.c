/* SPDX-License-Identifier: Apache-2.0
 *
 * Caches in int8 of every table: which bytes a line becomes, and where they are. tests/kernels/attend.c and
 * latent.c have attention over them.
 */
#include <float.h>
#include <math.h>

#include "caches.h"
#include "slice/kv.h"

/* Some lines are odd: zeros, values too small for a scale, large and infinite ones, NaN. */
static void make_odd(float *x, int n_line, int dim)
{
    static const float odd[] = {0, 0x1p-110F, -0x1p-99F, FLT_MAX, INFINITY, -INFINITY, NAN};
    for (int i = 0; i < n_line; i++) {
        for (int j = 0; j < dim; j++)
            x[i * dim + j] *= i % 4 == 1 ? 0x1p-60F : i % 4 == 2 ? 3e4F : 1;
        if (i % 3 == 0)
            for (int j = 0; j < dim; j++)
                x[i * dim + j] = i % 2 && j % 2 ? 0 : odd[i / 3 % COUNT(odd)];
    }
}

/* Bytes of k or v of a line's elements [first, end), as the format says, into page. x becomes what they
 * mean. */
static void expect(char *page, const cache *c, int pos, int head, float *x, int first, int end, bool key)
{
    int8_t code[1024];
    uint16_t scale = quantize(x, end - first, code);
    for (int j = first; j < end; j++) {
        place at = place_of(c, 0, pos, head, j);
        page[key ? at.key : at.value] = (char)code[j - first];
        memcpy(page + at.scale, &scale, sizeof scale);
    }
}

static void check_store(const cake_kernels *op)
{
    static const int dims[] = {1, 5, 8, 16, 24, 64, 88, 130, 600};
    enum { N_KV = 2, LEN = 70 };
    for (int d = 0; d < COUNT(dims) && op->oracle; d++)
        for (int team = 1; team < 4; team++) {
            cache c = cache_open(CAKE_I8, 1, LEN, N_KV, dims[d], 7);
            const int n_line = LEN * N_KV;
            make_odd(c.k, n_line, dims[d]);
            make_odd(c.v, n_line, dims[d]);
            float *k = copy_floats(c.k, (size_t)(n_line * dims[d])),
                  *v = copy_floats(c.v, (size_t)(n_line * dims[d]));
            char *key = malloc(c.bytes), *value = malloc(c.bytes);
            CU_ASSERT_FATAL(key && value);
            memset(key, 0xFF, c.bytes);
            memset(value, 0xFF, c.bytes);
            for (int i = 0; i < n_line; i++) {
                expect(key, &c, i / N_KV, i % N_KV, k + i * dims[d], 0, dims[d], true);
                expect(value, &c, i / N_KV, i % N_KV, v + i * dims[d], 0, dims[d], false);
            }
            cache_fill(op, &c, team);
            CU_ASSERT(!memcmp(key, c.kv.k, c.bytes));
            CU_ASSERT(!memcmp(value, c.kv.v, c.bytes));
            void *all[] = {k, v, key, value};
            for (int i = 0; i < COUNT(all); i++)
                free(all[i]);
            cache_close(&c);
        }
}

static void test_store(void)
{
    for_tables(check_store);
}

typedef struct latents {
    const cake_kernels *op;
    const cache *c;
    const cake_row *rows;
    const float *latent, *rope;
} latents;

static void run_latent_store(const cake_exec *exec, void *arg)
{
    latents *l = arg;
    l->op->latent_store(exec, &l->c->kv, l->latent, l->rope, l->rows, l->c->length);
}

/* The latent and the part that is rotated have a scale each. */
static void check_latents(const cake_kernels *op)
{
    static const int sizes[][2] = {{512, 64}, {30, 6}, {7, 2}, {136, 16}};
    enum { LEN = 70 };
    for (int s = 0; s < COUNT(sizes) && op->oracle; s++) {
        const int n_value = sizes[s][0], n_rope = sizes[s][1];
        cache c = cache_open_latents(CAKE_I8, 1, LEN, 1, n_value + n_rope, n_value, 7);
        float *latent = random_floats((size_t)(LEN * n_value), 1),
              *rope = random_floats((size_t)(LEN * n_rope), 2);
        make_odd(latent, LEN, n_value);
        make_odd(rope + n_rope, LEN - 1, n_rope);
        cake_row rows[LEN];
        for (int i = 0; i < LEN; i++)
            rows[i] = (cake_row){0, i, CAKE_ROW_PROMPT, 0, 0, 0};
        cake_exec_run(3, run_latent_store, &(latents){op, &c, rows, latent, rope});
        char *key = malloc(c.bytes);
        CU_ASSERT_PTR_NOT_NULL_FATAL(key);
        memset(key, 0xFF, c.bytes);
        for (int i = 0; i < LEN; i++) {
            expect(key, &c, i, 0, latent + i * n_value, 0, n_value, true);
            expect(key, &c, i, 0, rope + i * n_rope, n_value, n_value + n_rope, true);
        }
        CU_ASSERT(!memcmp(key, c.kv.k, c.bytes));
        free(latent);
        free(rope);
        free(key);
        cache_close(&c);
    }
}

static void test_latents(void)
{
    for_tables(check_latents);
}

/* Sizes of lines, and of pages, which are the same ones. */
static void test_sizes(void)
{
    static const struct {
        cake_dtype dtype;
        int head_dim, n_value;
        size_t line;
    } lines[] = {{CAKE_F32, 64, 0, 256},   {CAKE_BF16, 64, 0, 128},     {CAKE_F16, 7, 0, 14},
                 {CAKE_I8, 64, 0, 66},     {CAKE_I8, 128, 0, 130},      {CAKE_I8, 7, 0, 9},
                 {CAKE_I8, 576, 512, 580}, {CAKE_BF16, 576, 512, 1152}, {CAKE_I8, 36, 30, 40}};
    for (int i = 0; i < COUNT(lines); i++) {
        const int dim = lines[i].head_dim, n_value = lines[i].n_value, n_kv = n_value ? 1 : 3;
        CU_ASSERT_EQUAL(cake_kv_line_bytes(lines[i].dtype, dim, n_value), lines[i].line);
        cake_kv_shape shape = {.dtype = lines[i].dtype,
                               .n_kv = n_kv,
                               .head_dim = dim,
                               .n_value = n_value,
                               .n_layer = 5,
                               .n_slot = 1,
                               .n_page = 4,
                               .stride = 4};
        const size_t half = CAKE_PAGE * (size_t)n_kv * lines[i].line, page = 5 * half * (n_value ? 1 : 2);
        CU_ASSERT_EQUAL(cake_kv_page_bytes(&shape), page);
        cake_kv_cache kv;
        CU_ASSERT_EQUAL_FATAL(cake_kv_open(&shape, NULL, &kv), CAKE_OK);
        for (int page_at = 0; page_at < 4; page_at++)
            cake_kv_apply(&kv, &(cake_change){.kind = CAKE_CHANGE_MAP, .index = page_at, .page = page_at});
        cake_kv first = cake_kv_layer(&kv, 0), last = cake_kv_layer(&kv, 4);
        const size_t size = cake_dtype_bytes(lines[i].dtype);
        CU_ASSERT_EQUAL((size_t)((char *)last.k - (char *)first.k), 4 * half * (n_value ? 1 : 2));
        CU_ASSERT(n_value ? !first.v : (size_t)((char *)first.v - (char *)first.k) == half);
        CU_ASSERT_EQUAL(cake_kv_page(&first, 0, 3 * CAKE_PAGE, n_kv - 1) * size,
                        3 * page + (size_t)(n_kv - 1) * CAKE_PAGE * lines[i].line);
        cake_kv_close(&kv);
    }
}

int main(void)
{
    static const suite_test tests[] = {
        {"kv_store: codes and scales, in the right places and nowhere else", test_store},
        {"latent_store: two scales a line", test_latents},
        {"sizes of lines and pages", test_sizes},
    };
    return SUITE_MAIN("int8_cache", tests);
}
