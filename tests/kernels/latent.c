/* SPDX-License-Identifier: Apache-2.0
 *
 * Latent attention of every table: compared with float64, and with itself where other rows, the team and the
 * places of pages must not change the bits.
 */
#include <math.h>

#include "caches.h"
#include "kernels/unfused.h"

enum { N_SLOT = 3, LENGTH = 1100 };

/* Runs of a prompt and of replayed rows, and single rows, in any order of slots. */
static const cake_row rows[] = {{1, 0, CAKE_ROW_PROMPT, 0, 0, 0},      {0, 61, CAKE_ROW_PROMPT, 0, 0, 0},
                                {0, 62, CAKE_ROW_PROMPT, 0, 0, 0},     {0, 63, CAKE_ROW_PROMPT, 0, 0, 0},
                                {0, 64, CAKE_ROW_PROMPT, 0, 0, 0},     {2, 1022, CAKE_ROW_REPLAYED, 0, 0, 0},
                                {2, 1023, CAKE_ROW_REPLAYED, 0, 0, 0}, {2, 1024, CAKE_ROW_GENERATED, 0, 0, 0},
                                {1, 1088, CAKE_ROW_GENERATED, 0, 0, 0}};
enum { N_ROW = 9 };

typedef struct sizes {
    int n_head, n_value, n_rope;
} sizes;

typedef struct latent_call {
    const cake_kernels *op;
    const cake_kv *kv;
    const cake_row *rows;
    int n_row;
    const float *latent, *rope; /* to store */
    cake_latent_query q;
    float *out, scale;
} latent_call;

static void store(const cake_exec *exec, void *arg)
{
    latent_call *c = arg;
    c->op->latent_store(exec, c->kv, c->latent, c->rope, c->rows, c->n_row);
}

static void attend(const cake_exec *exec, void *arg)
{
    latent_call *c = arg;
    c->op->latent_attend(exec, c->out, &c->q, c->kv, c->rows, c->n_row, c->scale);
}

/* Stores c->k of all positions; values become the first elements of keys. */
static void fill(const cake_kernels *op, cache *c, int team)
{
    const int dim = c->kv.head_dim, n_value = c->kv.n_value, n_rope = dim - n_value;
    const int n_row = c->n_slot * c->length;
    cake_row *all = cake_alloc((size_t)n_row, sizeof *all);
    float *latent = random_floats((size_t)(n_row * n_value), 0),
          *rope = random_floats((size_t)(n_row * n_rope), 0);
    for (int i = 0; i < n_row; i++) {
        all[i] = (cake_row){i / c->length, i % c->length, CAKE_ROW_PROMPT, 0, 0, 0};
        memcpy(latent + i * n_value, c->k + i * dim, (size_t)n_value * sizeof *latent);
        memcpy(rope + i * n_rope, c->k + i * dim + n_value, (size_t)n_rope * sizeof *rope);
    }
    cake_exec_run(
        team, store,
        &(latent_call){.op = op, .kv = &c->kv, .rows = all, .n_row = n_row, .latent = latent, .rope = rope});
    hold(c->k, (size_t)n_row, &c->kv);
    memcpy(c->v, c->k, (size_t)(n_row * dim) * sizeof *c->v);
    free(all);
    free(latent);
    free(rope);
}

static cache open_latents(const cake_kernels *op, cake_dtype dtype, sizes s, uint64_t order, int team)
{
    cache c = cache_open_latents(dtype, N_SLOT, LENGTH, 1, s.n_value + s.n_rope, s.n_value, order);
    free(c.kv.v);
    c.kv.v = NULL;
    fill(op, &c, team);
    return c;
}

/* The query of head h of row t, whole. */
static void query_of(const latent_call *c, int t, int h, float *q)
{
    const int n_value = c->kv->n_value, n_rope = c->kv->head_dim - n_value;
    memcpy(q, c->q.latent + (h * c->n_row + t) * n_value, (size_t)n_value * sizeof *q);
    memcpy(q + n_value, c->q.rope + (t * c->q.n_head + h) * n_rope, (size_t)n_rope * sizeof *q);
}

/* Results too far from float64. */
static int errors(const latent_call *c, const cache *from)
{
    const int dim = from->kv.head_dim;
    float q[CAKE_LATENT_DIM];
    double exact[CAKE_LATENT_DIM];
    int wrong = 0;
    const call how = {.op = c->op, .kv = &from->kv, .scale = c->scale};
    const bool rounded = rounds(c->op, &from->kv);
    for (int t = 0; t < c->n_row; t++)
        for (int h = 0; h<c->q.n_head; h += c->q.n_head> 8 ? 7 : 1) {
            query_of(c, t, h, q);
            if (rounded)
                free(as_dtype(q, (size_t)dim, CAKE_BF16));
            double size = attend_double(from, &c->rows[t], q, 0, NULL, &how, exact);
            const float *out = c->out + (h * c->n_row + t) * from->kv.n_value;
            wrong += far_elements(out, exact, from->kv.n_value, size, dim, c->rows[t].pos, rounded);
        }
    return wrong;
}

/* Every row alone, by a team of one. */
static void attend_alone(const latent_call *c, float *out)
{
    const int n_value = c->kv->n_value, n_rope = c->kv->head_dim - n_value, n_head = c->q.n_head;
    float *q = random_floats((size_t)(n_head * n_value), 0),
          *to = random_floats((size_t)(n_head * n_value), 0);
    for (int t = 0; t < c->n_row; t++) {
        latent_call one = *c;
        for (int h = 0; h < n_head; h++)
            memcpy(q + h * n_value, c->q.latent + (h * c->n_row + t) * n_value, (size_t)n_value * sizeof *q);
        one.q = (cake_latent_query){q, c->q.rope + t * n_head * n_rope, n_head};
        one.out = to;
        one.rows = c->rows + t;
        one.n_row = 1;
        cake_exec_run(1, attend, &one);
        for (int h = 0; h < n_head; h++)
            memcpy(out + (h * c->n_row + t) * n_value, to + h * n_value, (size_t)n_value * sizeof *out);
    }
    free(q);
    free(to);
}

static void check_sizes(const cake_kernels *op, cake_dtype dtype, sizes s)
{
    cache c = open_latents(op, dtype, s, 0, 1), other = open_latents(op, dtype, s, 99, 3);
    size_t n = (size_t)(N_ROW * s.n_head * s.n_value);
    float *latent = random_floats(n, 3), *rope = random_floats((size_t)(N_ROW * s.n_head * s.n_rope), 4);
    float *out = random_floats(n, 5), *again = random_floats(n, 6);
    latent_call a = {
        .op = op, .kv = &c.kv, .rows = rows, .n_row = N_ROW, .q = {latent, rope, s.n_head}, .out = out};
    a.scale = 3 / sqrtf((float)c.kv.head_dim);
    other.kv.v = malloc(other.bytes); /* for spoil, which writes there, too */
    spoil(&other, rows, N_ROW);
    memset(out, 0xFF, n * sizeof *out); /* what is there must not matter */
    cake_exec_run(1, attend, &a);
    CU_ASSERT_EQUAL(errors(&a, &c), 0);
    attend_alone(&a, again);
    CU_ASSERT(same_bits(out, again, n));
    a.out = again;
    for (int team = 0; team < COUNT(team_sizes); team++) {
        if (is_slow(op) && team_sizes[team] != 3)
            continue;
        a.kv = team % 2 ? &c.kv : &other.kv;
        memset(again, 0, n * sizeof *again);
        cake_exec_run(team_sizes[team], attend, &a);
        CU_ASSERT(same_bits(out, again, n));
    }
    free(latent);
    free(rope);
    free(out);
    free(again);
    cache_close(&c);
    cache_close(&other);
}

static void check_all(const cake_kernels *op)
{
    static const sizes some[] = {{16, 512, 64}, {5, 30, 6}, {3, 7, 2}, {20, 64, 8}, {130, 16, 16}, {1, 1, 2}};
    for (int i = 0; i < COUNT(some); i++)
        for (int dtype = 0; dtype < cache_dtypes(op); dtype++)
            if (!is_slow(op) || i == dtype + 1)
                check_sizes(op, (cake_dtype)dtype, some[i]);
}

static void test_latent(void)
{
    for_tables(check_all);
}

/* A latent that is not finite spoils the rows that see it, and no other one. */
static void check_nonfinite(const cake_kernels *op)
{
    const sizes s = {6, 24, 8};
    cache c = open_latents(op, CAKE_BF16, s, 0, 1);
    size_t n = (size_t)(N_ROW * s.n_head * s.n_value), size = (size_t)s.n_value;
    float *latent = random_floats(n, 3), *rope = random_floats((size_t)(N_ROW * s.n_head * s.n_rope), 4);
    float *out = random_floats(n, 5), *again = random_floats(n, 6);
    latent_call a = {.op = op,
                     .kv = &c.kv,
                     .rows = rows,
                     .n_row = N_ROW,
                     .q = {latent, rope, s.n_head},
                     .out = out,
                     .scale = 0.1F};
    cake_exec_run(1, attend, &a);
    ((uint16_t *)c.kv.k)[place_of(&c, 0, 63, 0, 3).key] = 0x7F80; /* seen by the rows 3 and 4 */
    a.out = again;
    cake_exec_run(1, attend, &a);
    for (int h = 0; h < s.n_head; h++)
        for (int t = 0; t < N_ROW; t++) {
            const float *x = out + ((size_t)(h * N_ROW + t)) * size,
                        *y = again + ((size_t)(h * N_ROW + t)) * size;
            bool sees = t == 3 || t == 4;
            CU_ASSERT(sees ? !isfinite(y[3]) : same_bits(x, y, size));
        }
    free(latent);
    free(rope);
    free(out);
    free(again);
    cache_close(&c);
}

static void test_nonfinite(void)
{
    for_tables(check_nonfinite);
}

int main(void)
{
    static const suite_test tests[] = {
        {"latent attention against float64, the bits of each row alone", test_latent},
        {"latents that are not finite", test_nonfinite},
    };
    return SUITE_MAIN("latent", tests);
}
