/* SPDX-License-Identifier: Apache-2.0
 *
 * The KV cache and attention of every table: compared with float64, and with itself where other rows, the
 * team and the places of pages must not change the bits.
 */
#include <math.h>

#include "caches.h"
#include "kernels/unfused.h"

static const cake_row rows[] = {{1, 0, CAKE_ROW_PROMPT, 0, 0, 0},      {0, 1, CAKE_ROW_PROMPT, 0, 0, 0},
                                {1, 62, CAKE_ROW_PROMPT, 0, 0, 0},     {0, 63, CAKE_ROW_GENERATED, 0, 0, 0},
                                {2, 64, CAKE_ROW_GENERATED, 0, 0, 0},  {1, 1022, CAKE_ROW_PROMPT, 0, 0, 0},
                                {2, 1023, CAKE_ROW_REPLAYED, 0, 0, 0}, {0, 1024, CAKE_ROW_GENERATED, 0, 0, 0},
                                {2, 2055, CAKE_ROW_GENERATED, 0, 0, 0}};
enum { N_ROW = 9, N_SLOT = 3, LENGTH = 2056 };

/* Parameters of the queries: factor of scores, cap and window; 0: none. */
typedef struct look {
    float sharp, cap;
    int window;
} look;

/* sink [n_head], or NULL. */
static void check_with(const cake_kernels *op, cake_dtype dtype, int n_head, int n_kv, int head_dim, look how,
                       const float *sink)
{
    cache c = cache_open(dtype, N_SLOT, LENGTH, n_kv, head_dim, 0);
    cache other = cache_open(dtype, N_SLOT, LENGTH, n_kv, head_dim, 99);
    c.kv.window = other.kv.window = how.window;
    c.kv.sink = other.kv.sink = sink;
    cache_fill(op, &c, 1);
    cache_fill(op, &other, 3);
    spoil(&other, rows, N_ROW);
    size_t n = (size_t)(N_ROW * n_head * head_dim);
    float *q = random_floats(n, 3), *out = random_floats(n, 4), *again = random_floats(n, 5);
    call a = {.op = op, .kv = &c.kv, .rows = rows, .n_row = N_ROW, .n_head = n_head, .out = out, .q = q};
    a.scale = how.sharp / sqrtf((float)head_dim);
    a.cap = how.cap;
    memset(out, 0xFF, n * sizeof *out); /* what is there must not matter */
    cake_exec_run(1, run_attend, &a);
    CU_ASSERT_EQUAL(attend_errors(&a, &c), 0);

    attend_rows_alone(&a, again);
    CU_ASSERT(same_bits(out, again, n));
    a.out = again;
    for (int team = 0; team < COUNT(team_sizes); team++) {
        if (is_slow(op) && team_sizes[team] != 3)
            continue;
        a.kv = team % 2 ? &c.kv : &other.kv;
        memset(again, 0, n * sizeof *again);
        cake_exec_run(team_sizes[team], run_attend, &a);
        CU_ASSERT(same_bits(out, again, n));
    }
    free(q);
    free(out);
    free(again);
    cache_close(&c);
    cache_close(&other);
}

static void check_look(const cake_kernels *op, cake_dtype dtype, int n_head, int n_kv, int head_dim, look how)
{
    check_with(op, dtype, n_head, n_kv, head_dim, how, NULL);
}

static void check_shape(const cake_kernels *op, cake_dtype dtype, int n_head, int n_kv, int head_dim,
                        float sharp)
{
    check_look(op, dtype, n_head, n_kv, head_dim, (look){.sharp = sharp});
}

/* Windows of one position, inside a page, of whole pages, across segments, and wider than all there is; caps
 * that bend the scores. */
static void check_windows(const cake_kernels *op)
{
    static const look looks[] = {{1, 0, 1},    {1, 0, 17},   {30, 0, 64},   {1, 0, 65}, {1, 0, 1000},
                                 {1, 0, 1024}, {1, 0, 1500}, {30, 0, 3000}, {30, 5, 0}, {30, 2.5F, 700}};
    for (int i = 0; i < COUNT(looks); i += is_executed(op) ? 2 : 1)
        check_look(op, (cake_dtype)(i % cache_dtypes(op)), 6, 2, 24, looks[i]);
}

static void test_windows(void)
{
    for_tables(check_windows);
}

static void check_sinks(const cake_kernels *op)
{
    static const int shapes[][3] = {{6, 2, 24}, {8, 1, 64}, {5, 1, 38}, {24, 12, 8}, {4, 2, 300}};
    float sink[64];
    for (int i = 0; i < COUNT(sink); i++) /* some outweigh everything, some nothing */
        sink[i] = (float)(i % 5 * 40 - 60) / (float)(i % 3 + 1);
    for (int i = 0; i < COUNT(shapes) && op->oracle; i++)
        for (int dtype = 0; dtype < cache_dtypes(op); dtype++)
            if (i == dtype || (!is_slow(op) && (suite_all() || dtype == CAKE_BF16)))
                check_with(op, (cake_dtype)dtype, shapes[i][0], shapes[i][1], shapes[i][2],
                           (look){i % 2 ? 10 : 1, i == 2 ? 5 : 0, i % 3 ? 0 : 333 + i}, sink);
}

static void test_sinks(void)
{
    for_tables(check_sinks);
}

static void check_attend(const cake_kernels *op)
{
    for (int dtype = 0; dtype < cache_dtypes(op); dtype++) {
        if (!is_executed(op) || dtype == CAKE_BF16)
            check_shape(op, (cake_dtype)dtype, 2, 1, 64, 1);
        check_shape(op, (cake_dtype)dtype, 9, 3, 24, 30); /* sharp: one position outweighs the others */
    }
    check_shape(op, CAKE_F32, 1, 1, 1, 1);
    check_shape(op, CAKE_BF16, 5, 1, 3, 1);
    if (is_slow(op))
        return;
    check_shape(op, CAKE_F16, 4, 1, 88, 5);
    check_shape(op, CAKE_F32, 4, 2, 512, 1);
    check_shape(op, CAKE_BF16, 2, 1, 136, 1);
    check_shape(op, CAKE_BF16, 24, 12, 8, 1); /* more KV heads, and groups, than are taken together */
    check_shape(op, CAKE_F16, 50, 10, 8, 5);
    if (!op->oracle)
        return;
    check_shape(op, CAKE_I8, 7, 7, 128, 5);
    check_shape(op, CAKE_I8, 3, 1, 600, 1); /* more than a group of a matrix, and than prompts take */
}

/* Pairs of BF16: every size of a group, heads with tails of vectors, one that is too large to be rounded. */
static void check_pairs(const cake_kernels *op)
{
    static const int dims[] = {64, 80, 96, 128, 256, 300, 512, 600, 38, 2};
    for (int i = is_slow(op) ? 8 : 0; i < COUNT(dims); i++)
        check_look(op, CAKE_BF16, i + 1, 1, dims[i],
                   (look){i % 2 ? 10 : 1, i == 3 ? 5 : 0, i % 3 ? 0 : 333 + i});
}

static void test_pairs(void)
{
    for_tables(check_pairs);
}

static void test_attend(void)
{
    for_tables(check_attend);
#ifdef CAKE_ON_EXECUTOR
    executor_backwards = true; /* the block that ends last is another one */
    check_shape(&cake_kernels_cuda, CAKE_BF16, 2, 1, 64, 1);
#endif
}

/* The prompt rows [first, first + n) of a slot, in calls of at most `step` rows, by a team. */
static void attend_chunks(call *c, cake_row *row, int first, int n, int step, int team, float *out,
                          const float *q)
{
    int64_t size = (int64_t)c->n_head * c->kv->head_dim;
    for (int i = 0; i < n; i++)
        row[i] = (cake_row){1, first + i, CAKE_ROW_PROMPT, 0, 0, 0};
    for (int at = 0; at < n; at += step) {
        c->rows = row + at;
        c->n_row = n - at < step ? n - at : step;
        c->out = out + at * size;
        c->q = q + at * size;
        cake_exec_run(team, run_attend, c);
    }
    c->rows = row;
    c->n_row = n;
    c->out = out;
    c->q = q;
}

/* A value that is not finite is in the sums of those rows alone that see it, and others' are as they were:
 * out. */
static void check_poison(call *a, cache *c, const cake_row *row, int n, const float *out, float *again)
{
    size_t line = (size_t)(c->kv.n_kv * c->kv.head_dim), size = (size_t)(a->n_head * c->kv.head_dim);
    int bad = row[n / 2].pos;
    for (size_t j = 0; j < line; j++)
        c->v[(size_t)(c->length + bad) * line + j] = j % 2 ? NAN : INFINITY;
    cache_fill(a->op, c, 1);
    a->rows = row;
    a->n_row = n;
    a->out = again;
    cake_exec_run(2, run_attend, a);
    for (int i = 0; i < n; i++) {
        bool sees = row[i].pos >= bad && (!c->kv.window || row[i].pos - bad < c->kv.window), finite = true;
        for (size_t j = 0; j < size; j++)
            finite = finite && isfinite(again[(size_t)i * size + j]);
        CU_ASSERT_EQUAL(finite, !sees);
        if (!sees)
            CU_ASSERT(same_bits(out + (size_t)i * size, again + (size_t)i * size, size));
    }
}

/* A prompt cut into waves in any way, among other rows, is close to float64 and has the same bits. In slow
 * tables wide heads lie near the beginning: narrow ones lie across the end of a segment. */
static void check_prompt(const cake_kernels *op)
{
    static const struct {
        int n_head, n_kv, head_dim, first, n;
        look how;
        cake_dtype dtype;
    } cases[] = {
        {4, 2, 24, 0, 200, {1, 0, 0}, CAKE_F32},
        {6, 2, 64, 990, 70, {30, 0, 0}, CAKE_BF16},
        {2, 2, 128, 63, 67, {5, 0, 40}, CAKE_F16},
        {5, 1, 136, 1000, 40, {30, 5, 65}, CAKE_BF16},
        {140, 1, 8, 100, 5, {1, 0, 0}, CAKE_F32},
        {2, 1, 300, 20, 30, {1, 0, 0}, CAKE_F32},
        {3, 3, 5, 0, 3, {1, 0, 1}, CAKE_F32},
        /* a last position without a partner, a first one whose partner is not seen */
        {2, 1, 128, 0, 131, {1, 0, 0}, CAKE_BF16},
        {7, 1, 80, 62, 67, {10, 0, 39}, CAKE_BF16},
        {3, 1, 96, 5, 68, {1, 4, 5}, CAKE_BF16},
        {8, 1, 256, 1020, 7, {20, 0, 1}, CAKE_BF16},
        {4, 2, 300, 0, 33, {1, 0, 2}, CAKE_BF16},
        {8, 1, 512, 1000, 40, {1, 0, 0}, CAKE_BF16},
        {5, 1, 7, 60, 9, {1, 0, 6}, CAKE_BF16},
        {6, 2, 64, 1000, 70, {20, 0, 0}, CAKE_I8},
        {3, 1, 136, 30, 40, {5, 4, 33}, CAKE_I8},
    };
    static const int steps[] = {1, 64, 33};
    for (int i = 0; i < COUNT(cases) - (op->oracle ? 0 : 2); i++) { /* the last ones are in int8 */
        int n = cases[i].n, dim = cases[i].head_dim;
        bool near = (is_slow(op) || op == &cake_kernels_ref) && !suite_all() && dim > 128 && n > 33;
        int first = near ? cases[i].first % CAKE_PAGE : cases[i].first;
        cache c = cache_open(cases[i].dtype, 2, first + n, cases[i].n_kv, dim, 3);
        c.kv.window = cases[i].how.window;
        cache_fill(op, &c, 1);
        size_t all = (size_t)(n * cases[i].n_head * dim);
        float *q = random_floats(all, 3), *out = random_floats(all, 4), *again = random_floats(all, 5);
        cake_row *row = cake_alloc((size_t)n, sizeof *row);
        call a = {.op = op, .kv = &c.kv, .n_head = cases[i].n_head};
        a.scale = cases[i].how.sharp / sqrtf((float)dim);
        a.cap = cases[i].how.cap;
        attend_chunks(&a, row, first, n, n, 1, out, q);
        CU_ASSERT_EQUAL(attend_errors(&a, &c), 0);
        spoil(&c, row, n);
        /* one row at a time, which takes longest, some of them only, unless there is time */
        for (int s = is_slow(op) ? 2 : !suite_all() && i % 3; s < (is_slow(op) ? 3 : COUNT(steps)); s++) {
            memset(again, 0, all * sizeof *again);
            attend_chunks(&a, row, first, n, steps[s], s + 1, again, q);
            if (!same_bits(out, again, all)) {
                printf("  %s: case %d, %d rows at a time\n", op->name, i, steps[s]);
                CU_FAIL("a row's bits depend on its company");
            }
        }
        check_poison(&a, &c, row, n, out, again);
        free(row);
        free(q);
        free(out);
        free(again);
        cache_close(&c);
    }
}

static void test_prompt(void)
{
    for_tables(check_prompt);
}

/* Prompts of several sequences in one call, begun inside pages: each row has the bits that it has among rows
 * of its own sequence only, whatever unseen lines hold, and even if a sequence's first position is all
 * NaN. */
static void check_neighbours(const cake_kernels *op)
{
    enum { SLOTS = 5, HIGH = 62, BAD = 1 };
    static const int first[SLOTS] = {30, 0, 100, 7, 63}, count[SLOTS] = {9, 21, 25, 6, 1},
                     group[] = {5, 3, 2, 16}, dims[] = {64, 256, 128, 80}, windows[] = {0, 37, 0, 22};
    for (int i = 0; i < (is_slow(op) ? 2 : COUNT(dims)); i++) {
        cache c = cache_open(CAKE_BF16, SLOTS, 128, 1, dims[i], 5);
        c.kv.window = windows[i];
        cache_fill(op, &c, 1);
        const size_t size = (size_t)(group[i] * dims[i]), all = HIGH * size;
        float *q = random_floats(all, 3), *out = random_floats(all, 4), *again = random_floats(all, 5);
        cake_row row[HIGH];
        call a = {.op = op, .kv = &c.kv, .n_head = group[i], .scale = 4 / sqrtf((float)dims[i])};
        for (int slot = 0, at = 0; slot < SLOTS; at += count[slot++]) {
            for (int j = 0; j < count[slot]; j++)
                row[at + j] = (cake_row){slot, first[slot] + j, CAKE_ROW_PROMPT, 0, 0, 0};
            a.rows = row + at;
            a.n_row = count[slot];
            a.q = q + (size_t)at * size;
            a.out = out + (size_t)at * size;
            cake_exec_run(1, run_attend, &a);
            CU_ASSERT_EQUAL(attend_errors(&a, &c), 0);
        }
        a.rows = row;
        a.n_row = HIGH;
        a.q = q;
        a.out = again;
        spoil(&c, row, HIGH);
        cake_exec_run(3, run_attend, &a);
        CU_ASSERT(same_bits(out, again, all));
        for (int j = 0; j < dims[i]; j++)
            c.v[(size_t)(BAD * c.length * dims[i] + j)] = j % 2 ? INFINITY : NAN;
        cache_fill(op, &c, 1);
        cake_exec_run(2, run_attend, &a);
        for (int j = 0; j < HIGH; j++) {
            const float *one = again + (size_t)j * size;
            CU_ASSERT(row[j].slot == BAD ? !isfinite(one[0]) && !isfinite(one[size - 1])
                                         : same_bits(out + (size_t)j * size, one, size));
        }
        free(q);
        free(out);
        free(again);
        cache_close(&c);
    }
}

static void test_neighbours(void)
{
    for_tables(check_neighbours);
}

/* The slot's first pages become those of another one. */
static void share_pages(cache *c, int slot, int from, int n)
{
    size_t line = (size_t)(c->kv.n_kv * c->kv.head_dim), rest = (size_t)c->length * line;
    size_t held = (size_t)n * CAKE_PAGE * line < rest ? (size_t)n * CAKE_PAGE * line : rest;
    memcpy(c->table + slot * c->kv.stride, c->table + from * c->kv.stride, (size_t)n * sizeof *c->table);
    memcpy(c->k + (size_t)slot * rest, c->k + (size_t)from * rest, held * sizeof *c->k);
    memcpy(c->v + (size_t)slot * rest, c->v + (size_t)from * rest, held * sizeof *c->v);
}

enum { SHARERS = 21, NARROW = 70 };

static int pick(uint64_t *seed, int n)
{
    return (int)(next_random(seed) % (uint64_t)n);
}

/* Generated rows of most slots, replayed rows of some, prompt rows of a few between them; positions differ by
 * little or by much. A small window ends after a segment's end for some rows and before it for others.
 * Returns the number of rows. */
static int deal_rows(cake_row *row, const cache *c, uint64_t *seed)
{
    int n = 0, near = c->kv.window == NARROW ? c->length - 1 : pick(seed, c->length);
    for (int slot = 0; slot < c->n_slot; slot++) {
        int kind = pick(seed, 8), many = kind < 2 ? 1 + pick(seed, 4) : 1;
        int pos = pick(seed, 3) ? near - pick(seed, 20) : pick(seed, c->length);
        pos = pos < 0 ? 0 : pos + many > c->length ? c->length - many : pos;
        for (int i = 0; i < many; i++)
            row[n++] =
                (cake_row){slot,
                           pos + i,
                           kind == 0 ? CAKE_ROW_PROMPT : kind == 1 ? CAKE_ROW_REPLAYED : CAKE_ROW_GENERATED,
                           0,
                           0,
                           0};
    }
    return n;
}

/* Waves of rows whose tables begin alike, as deep as it happens: each row's bits are those it has alone. */
static void check_shared(const cake_kernels *op)
{
    static const int dims[] = {8, 24, 32, 5, 40, 16, 260}, lengths[] = {1100, 90, 400, 150},
                     windows[] = {0, 600, NARROW};
    for (uint64_t wave = 0; wave < (is_slow(op) ? 2 : 12); wave++) {
        uint64_t seed = wave;
        int n_kv = 1 + pick(&seed, 3), group = 1 + (int)(wave * 5 % 9);
        cache c = cache_open((cake_dtype)(wave % (uint64_t)cache_dtypes(op)), SHARERS, lengths[wave % 4],
                             n_kv, dims[wave % 7], 9);
        c.kv.window = windows[wave / 4];
        for (int slot = 1; slot < SHARERS; slot++)
            if (pick(&seed, 5))
                share_pages(&c, slot, slot - 1,
                            pick(&seed, 3) ? c.length / CAKE_PAGE : pick(&seed, c.kv.stride));
        cache_fill(op, &c, 1);
        cake_row row[4 * SHARERS];
        int n = deal_rows(row, &c, &seed), n_head = group * n_kv;
        spoil(&c, row, n);
        size_t all = (size_t)(n * n_head * c.kv.head_dim);
        float *q = random_floats(all, 3), *out = random_floats(all, 4), *again = random_floats(all, 5);
        call a = {.op = op, .kv = &c.kv, .rows = row, .n_row = n, .n_head = n_head, .out = out, .q = q};
        a.scale = (wave % 5 == 1 ? 20 : 1) / sqrtf((float)c.kv.head_dim);
        a.cap = wave % 5 == 2 ? 3 : 0;
        attend_rows_alone(&a, out);
        CU_ASSERT(wave % 3 || attend_errors(&a, &c) == 0);
        a.out = again;
        for (int team = is_slow(op) ? 3 : 1; team <= (is_slow(op) ? 3 : 4); team++) {
            memset(again, 0xFF, all * sizeof *again);
            cake_exec_run(team, run_attend, &a);
            if (!same_bits(out, again, all)) {
                printf("  %s: wave %d, a team of %d\n", op->name, (int)wave, team);
                CU_FAIL("a row's bits depend on who shares its pages");
            }
        }
        free(q);
        free(out);
        free(again);
        cache_close(&c);
    }
}

static void test_shared(void)
{
    for_tables(check_shared);
}

/* The positions that two rows share, counted one by one. */
static void test_common(void)
{
    enum { STRIDE = 5, LAST = STRIDE * CAKE_PAGE - 1 };
    static const int32_t table[] = {3, 4, 5, 6, 7, 3, 4, 9, 6, 8, 1, 4, 5, 6, 7};
    static const int positions[] = {0, 1, 63, 64, 127, 128, 200, 255, LAST}, windows[] = {0, 1, 64, 70, 150};
    for (int all = 0; all < 9 * COUNT(windows) * COUNT(positions) * COUNT(positions); all++) {
        int pair = all % 9, rest = all / 9;
        cake_kv kv = {.table = table, .stride = STRIDE, .window = windows[rest % COUNT(windows)]};
        rest /= COUNT(windows);
        cake_row a = {.slot = pair / 3, .pos = positions[rest % COUNT(positions)]};
        cake_row b = {.slot = pair % 3, .pos = positions[rest / COUNT(positions)]};
        int common = 0, first;
        bool same = true;
        for (int pos = 0; pos <= LAST; pos++) {
            bool seen = pos <= a.pos && pos <= b.pos && cake_kv_first(&kv, &a) <= pos &&
                        cake_kv_first(&kv, &b) <= pos;
            same = same && !(seen && table[a.slot * STRIDE + pos / CAKE_PAGE] !=
                                         table[b.slot * STRIDE + pos / CAKE_PAGE]);
            common += seen && same;
        }
        CU_ASSERT_EQUAL(cake_kv_shared(&kv, &a, &b, &first), common);
        CU_ASSERT(common == 0 ||
                  first == (cake_kv_first(&kv, &a) > cake_kv_first(&kv, &b) ? cake_kv_first(&kv, &a)
                                                                            : cake_kv_first(&kv, &b)));
    }
}

/* kv_store writes the values of the scalar conversions and nothing else. */
static void check_store(const cake_kernels *op)
{
    static const int dims[] = {1, 5, 8, 16, 24, 48, 88, 130};
    for (int dtype = 0; dtype < CAKE_N_DTYPE; dtype++)
        for (int d = 0; d < COUNT(dims); d++) {
            enum { N_KV = 2, LEN = 70 };
            cache c = cache_open((cake_dtype)dtype, 1, LEN, N_KV, dims[d], 7);
            int n = LEN * N_KV * dims[d];
            for (int i = 0; i < n; i++) /* any bit pattern, NaN and all */
                if (i % 3 == 0) {
                    uint64_t seed = (uint64_t)i;
                    uint32_t bits = (uint32_t)next_random(&seed);
                    memcpy(&c.k[i], &bits, sizeof bits);
                }
            float *given = copy_floats(c.k, (size_t)n);
            cache_fill(op, &c, 2);
            size_t size = cake_dtype_bytes((cake_dtype)dtype);
            char *key = malloc(c.bytes), *value = malloc(c.bytes);
            CU_ASSERT_FATAL(key && value);
            memset(key, 0xFF, c.bytes);
            memset(value, 0xFF, c.bytes);
            char *bits = as_dtype(given, (size_t)n, (cake_dtype)dtype);
            char *v_bits = as_dtype(c.v, (size_t)n, (cake_dtype)dtype);
            for (int i = 0; i < n; i++) {
                int row = i / dims[d];
                place at = place_of(&c, 0, row / N_KV, row % N_KV, i % dims[d]);
                memcpy(key + at.key * size, bits + (size_t)i * size, size);
                memcpy(value + at.value * size, v_bits + (size_t)i * size, size);
            }
            CU_ASSERT(!memcmp(key, c.kv.k, c.bytes));
            CU_ASSERT(!memcmp(value, c.kv.v, c.bytes));
            free(v_bits);
            free(key);
            free(value);
            free(bits);
            free(given);
            cache_close(&c);
        }
}

static void test_store(void)
{
    for_tables(check_store);
}

/* A broken model's numbers reach the scores as NaN, where they are found; other heads are not touched. */
static void check_odd(const cake_kernels *op)
{
    enum { DIM = 16, HEADS = 2 };
    static const float odd[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < COUNT(odd); i++) {
        cache c = cache_open(CAKE_F32, 1, 100, HEADS, DIM, 0);
        cache_fill(op, &c, 1);
        float *q = random_floats(DIM * HEADS, 3), *out = random_floats(DIM * HEADS, 4);
        q[3] = odd[i];
        cake_row row = {0, 99, CAKE_ROW_PROMPT, 0, 0, 0};
        call a = {op, &c.kv, &row, 1, HEADS, out, q, NULL, NULL, 1, 0};
        cake_exec_run(1, run_attend, &a);
        for (int j = 0; j < DIM; j++)
            CU_ASSERT(isnan(out[j]) && isfinite(out[DIM + j]));
        free(q);
        free(out);
        cache_close(&c);
    }
}

static void test_odd(void)
{
    for_tables(check_odd);
}

/* Attention and packing at once (cake_kernels.attend_pack), against one after the other. */
typedef struct attending {
    call all;
    void *apart, *at_once;
    cake_dtype dtype;
    bool done;
} attending;

static void run_attend_pack(const cake_exec *exec, void *arg)
{
    attending *a = arg;
    const call *c = &a->all;
    run_attend(exec, &a->all);
    c->op->input_pack(exec, a->apart, c->out, NULL, a->dtype, c->n_head * c->kv->head_dim, c->n_row);
    a->done = c->op->attend_pack(exec, a->at_once, a->dtype, c->q, c->kv, c->rows, c->n_row, c->n_head,
                                 c->scale, c->cap);
}

static void check_one_packed(const cake_kernels *op, cake_dtype kept, cake_dtype dtype, int n_kv,
                             int head_dim, int window, bool prompt)
{
    cake_row own[N_ROW];
    for (int i = 0; i < N_ROW; i++) {
        own[i] = rows[i];
        own[i].kind = i % 2 ? CAKE_ROW_REPLAYED : CAKE_ROW_GENERATED;
    }
    if (prompt)
        own[N_ROW - 1].kind = CAKE_ROW_PROMPT;
    const int n_head = 2 * n_kv, n = n_head * head_dim;
    cache c = cache_open(kept, N_SLOT, LENGTH, n_kv, head_dim, 7);
    c.kv.window = window;
    cache_fill(op, &c, 1);
    const size_t bytes = op->input_bytes(CAKE_F32, n, N_ROW);
    float *q = random_floats((size_t)(N_ROW * n), 1), *out = random_floats((size_t)(N_ROW * n), 2);
    attending a = {.all = {.op = op, .kv = &c.kv, .rows = own, .n_row = N_ROW, .n_head = n_head, .out = out},
                   .apart = aligned_alloc(64, bytes),
                   .at_once = aligned_alloc(64, bytes),
                   .dtype = dtype};
    a.all.q = q;
    a.all.scale = 1 / sqrtf((float)head_dim);
    cake_exec_run(1, run_attend_pack, &a);
    CU_ASSERT_EQUAL(a.done, !prompt && kept == CAKE_BF16 && cake_cuda_tiles(head_dim) &&
                                (dtype == CAKE_BF16 || dtype == CAKE_F16) && n % CAKE_CUDA_K == 0);
    CU_ASSERT(!a.done || !memcmp(a.apart, a.at_once, N_ROW * cake_cuda_step(dtype, n)));
    void *all[] = {q, out, a.apart, a.at_once};
    for (int i = 0; i < COUNT(all); i++)
        free(all[i]);
    cache_close(&c);
}

static void check_packed(const cake_kernels *op)
{
    if (op->attend_pack == cake_unfused_attend_pack)
        return;
    for (int dtype = 0; dtype < CAKE_N_KEPT; dtype++)
        check_one_packed(op, CAKE_BF16, (cake_dtype)dtype, 1, 64, 0, false);
    check_one_packed(op, CAKE_BF16, CAKE_BF16, 1, 80, 0, false);
    check_one_packed(op, CAKE_BF16, CAKE_F16, 3, 80, 700, false);
    check_one_packed(op, CAKE_BF16, CAKE_BF16, 2, 128, 0, true);
    check_one_packed(op, CAKE_BF16, CAKE_BF16, 2, 40, 0, false);
    check_one_packed(op, CAKE_F32, CAKE_BF16, 2, 64, 0, false);
}

static void test_packed(void)
{
    for_tables(check_packed);
}

static void run_alone(void *arg)
{
    cake_exec_run(1, run_attend, arg);
}

/* More rows and heads than a launch has room for: what was recorded with the long row first is right when it
 * is last, too. */
static void check_again(const cake_kernels *op)
{
    enum { HEADS = 128, DIM = 256, ROWS = 28, FAR = 4500 };
    static int key; /* what was recorded with one is not asked for again */
    if (op->attend_pack == cake_unfused_attend_pack)
        return;
    key++;
    cache c = cache_open(CAKE_BF16, 1, FAR, 1, DIM, 0);
    cache_fill(op, &c, 1);
    const size_t n = (size_t)ROWS * HEADS * DIM;
    float *q = random_floats(n, 1), *out = random_floats(n, 2), *wanted = random_floats(n, 3);
    cake_row own[ROWS];
    call a = {.op = op, .kv = &c.kv, .rows = own, .n_row = ROWS, .n_head = HEADS, .out = wanted, .q = q};
    a.scale = 0.06F;
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < ROWS; i++)
            own[i] = (cake_row){.pos = i == (turn == 1 ? 0 : ROWS - 1) ? FAR - 1 : 40 + i,
                                .kind = CAKE_ROW_GENERATED};
        if (turn)
            op->memory->replay(&key, sizeof key, run_alone, &a);
        else
            run_alone(&a);
        a.out = out;
    }
    CU_ASSERT(same_bits(out, wanted, n));
    free(q);
    free(out);
    free(wanted);
    cache_close(&c);
}

static void test_again(void)
{
    for_tables(check_again);
}

int main(void)
{
    static const suite_test tests[] = {
        {"kv_store: the bits of the scalar conversions, in the right lines", test_store},
        {"attend: float64; any company, team and place of pages", test_attend},
        {"attend: pairs of BF16, groups of 1 to 8 heads, NaN in every line that is not seen", test_pairs},
        {"attend: windows and soft caps, whatever lies behind the window", test_windows},
        {"attention: sinks, against float64 and in any company", test_sinks},
        {"attend: prompt rows, however they are cut into waves", test_prompt},
        {"attend: prompts of several sequences side by side", test_neighbours},
        {"attend: rows that share pages, in any company, by any team", test_shared},
        {"cake_kv_shared: position by position", test_common},
        {"attend: NaN and infinities stay in their head", test_odd},
        {"attend: what was recorded, when rows have changed places", test_again},
        {"attend_pack: the bits of attention, then of packing", test_packed},
    };
    return SUITE_MAIN("attend", tests);
}
