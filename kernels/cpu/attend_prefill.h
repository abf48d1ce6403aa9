/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of prompt rows, and latent attention of all rows, written with vec_*.h and step_*.h; included by
 * attend.h.
 *
 * In: queries of consecutive rows of one slot, the cache. Out: the weighted sums of V. A piece of work is
 * up to STAND queries, each a row's and a query head's, of one KV head. They lie side by side in vectors, so
 * that each element of K and V is read once for all of them: scores = K Q^T and out^T = V^T weights, a page
 * at a time, the maximum so far going along (online softmax, Milakov & Gimelshein 2018). Where a step of BF16
 * takes two products, pairs of K and V from the cache are multiplied by pairs of q and of weights; else they
 * are converted to floats.
 *
 * Invariant: a lane depends on its own row and head only. Scores run upwards in the element, sums over
 * positions upwards in the position, page by page; a position that a row does not see weighs nothing, which
 * changes no bit of its sums where V is finite; where it is not, the row is computed once more, alone. So
 * bits depend neither on the chunks of a prompt nor on neighbouring queries.
 */
#ifndef CAKE_KERNELS_CPU_ATTEND_PREFILL_H
#define CAKE_KERNELS_CPU_ATTEND_PREFILL_H

#include <float.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/pack.h"
#include "kernels/cpu/row_ops.h"
#include "kernels/cpu/small_gemm.h"

#define BLOCK_WIDTH (TILE_VECTORS * LANES)            /* queries of a tile */
#define STAND       (128 / BLOCK_WIDTH * BLOCK_WIDTH) /* queries side by side */
#define PREFILL_DIM CAKE_LATENT_DIM /* maximum head size; larger ones go to attend_decode.h */

/* Positions that the queries of a block see, both ends included: by any of them, and by all of them. */
typedef struct sight {
    int first, last;
    int all_first, all_last;
} sight;

/* Where the queries of rows lie: of row r and head h the first elements at first + r * first_row + h *
 * first_head, and n_rest more at rest + r * rest_row + h * rest_head. Results lie in out as `first` does. */
typedef struct queries {
    const float *first, *rest;
    float *out;
    int64_t first_row, first_head, rest_row, rest_head;
    int n_rest;
    int group; /* heads; query i is that of row i / group and head i % group */
    int head;  /* the first of them, of all heads of a row */
} queries;

/* The left operand of matrix_add_as. */
typedef struct operand {
    const float *at;
    int64_t row, col;
} operand;

typedef struct prefill {
    const cake_kv *kv;
    float scale, cap;
    int kv_head, slot, n;                       /* queries */
    int width;                                  /* n in whole vectors */
    int first, last;                            /* positions that any of them sees */
    sight block[STAND / BLOCK_WIDTH];           /* of BLOCK_WIDTH queries each */
    int from[STAND], to[STAND];                 /* positions that each sees, both included */
    _Alignas(64) float near[STAND], far[STAND]; /* the same, from the page's first line on */
    float max[STAND], total[STAND], change[STAND];
    float q[PREFILL_DIM * STAND];   /* [steps of head_dim, width] */
    float out[PREFILL_DIM * STAND]; /* [elements of a value, width] */
    float score[CAKE_PAGE * STAND]; /* [position, width], then weights [steps of positions, width] */
    /* [head_dim, position] of K, then [position, head_dim] of V; or [value, pairs of positions] of latents */
    float page[CAKE_PAGE * PREFILL_DIM + LANES];
} prefill;

/* Whether products take unconverted pairs of K and V. */
static bool takes_pairs(const cake_kv *kv)
{
    return STEP_OF(CAKE_BF16) == 2 && cake_kv_pair(kv) == 2 && kv->head_dim <= PREFILL_DIM;
}

/* to [n, length] = elements of K or V from number `at` on, as floats; of rows in pairs n / 2 are read. */
static void read_rows_as_floats(float *to, const cake_kv *kv, const void *data, size_t at, int n, int length)
{
    if (cake_kv_pair(kv) == 1) {
        for (int i = 0, all = n * length; i < all; i += LANES)
            vec_store(to + i,
                      vec_load_as(data, kv->dtype, at + (size_t)i, all - i < LANES ? all - i : LANES));
        return;
    }
    const float *pairs = (const float *)data + at / 2;
    for (; n > 0; n -= 2, to += 2 * length, pairs += length)
        for (int i = 0; i < length; i += LANES) {
            int m = length - i < LANES ? length - i : LANES;
            vec even, odd;
            vec_split(vec_load_n(pairs + i, m), &even, &odd);
            vec_store_n(to + i, even, m);
            vec_store_n(to + length + i, odd, m);
        }
}

/* The scales of a head's part of a page of int8; rest: of what follows the n_value elements. */
INLINE const uint16_t *scales_of(const cake_kv *kv, const void *part, bool rest)
{
    return (const uint16_t *)(const void *)((const char *)part + cake_kv_scale(kv, 0, rest));
}

/* read_rows_as_floats of all keys of a page of int8, and of values from line `line` on. */
static void read_keys_of_codes(float *to, const cake_kv *kv, size_t page)
{
    const char *part = (const char *)kv->k + page;
    for (int i = 0; i < CAKE_PAGE; i += LANES) {
        const char *code = part + i;
        float *out = to + i;
        vec scale = vec_load_as(scales_of(kv, part, false), CAKE_BF16, (size_t)i, LANES);
        for (int j = 0; j < kv->head_dim; j++, code += CAKE_PAGE, out += CAKE_PAGE) {
            if (kv->n_value && j == kv->n_value)
                scale = vec_load_as(scales_of(kv, part, true), CAKE_BF16, (size_t)i, LANES);
            vec_store(out, vec_mul(vec_load_bytes(code, LANES), scale));
        }
    }
}

static void read_values_of_codes(float *to, const cake_kv *kv, size_t page, int line, int n)
{
    const char *part = (const char *)kv->v + page;
    for (int end = line + n; line < end; line++, to += kv->head_dim) {
        vec scale = vec_set(cake_bf16_to_f32(scales_of(kv, part, false)[line]));
        const char *code = part + cake_kv_value(kv, line, 0);
        for (int i = 0; i < kv->head_dim; i += LANES) {
            int m = kv->head_dim - i < LANES ? kv->head_dim - i : LANES;
            vec_store_n(to + i, vec_mul(vec_load_bytes(code + i, m), scale), m);
        }
    }
}

/* The page's keys from line `line` on: a position's a_row is 1, a step's a_col CAKE_PAGE. */
INLINE const float *keys_of(prefill *p, size_t page, int line, const cake_dtype dtype)
{
    if (STEP_OF(dtype) == 2)
        return (const float *)p->kv->k + page / 2 + line;
    if (p->kv->dtype == CAKE_F32 && !p->kv->n_value) /* of latents, values are these keys */
        return (const float *)p->kv->k + page + line;
    if (p->kv->dtype == CAKE_I8)
        read_keys_of_codes(p->page, p->kv, page);
    else
        read_rows_as_floats(p->page, p->kv, p->kv->k, page, p->kv->head_dim, CAKE_PAGE);
    return p->page + line;
}

/* Words of two elements of a line, of the lines of a page, become words of one element of two lines: to
 * [2 * n_pair, CAKE_PAGE / 2] from [n_pair, CAKE_PAGE]. */
static void transpose_pairs(float *to, const float *from, int n_pair)
{
    for (int i = 0; i < n_pair; i++, from += CAKE_PAGE, to += CAKE_PAGE)
        for (int j = 0; j < CAKE_PAGE; j += 2 * SQUARE) {
            const words8 x = words8_load(from + j), y = words8_load(from + j + SQUARE);
            words8_store(to + j / 2, in_row(x, y, false));
            words8_store(to + CAKE_PAGE / 2 + j / 2, in_row(x, y, true));
        }
}

/* values_of for latents, which are the first elements of the keys. */
INLINE operand latents_of(prefill *p, size_t page, int pos, int n, const cake_dtype dtype)
{
    const int line = pos % CAKE_PAGE, pairs = CAKE_PAGE / 2;
    if (STEP_OF(dtype) == 1) /* keys_of has converted them */
        return (operand){p->page + line, CAKE_PAGE, 1};
    transpose_pairs(p->page, (const float *)p->kv->k + page / 2, p->kv->n_value / 2);
    for (int j = 0; pos + n - 1 > p->last && j < p->kv->n_value; j++)
        ((uint16_t *)(p->page + j * pairs))[line + n - 1] = 0;
    return (operand){p->page + line / 2, pairs, 1};
}

/* The values of positions [pos, pos + n), by element and step. Halves of pairs that no query sees may be
 * unused memory, even NaN, and become zeros. */
INLINE operand values_of(prefill *p, size_t page, int pos, int n, const cake_dtype dtype)
{
    int dim = p->kv->head_dim, step = cake_kv_pair(p->kv), line = pos % CAKE_PAGE, over = line % step;
    size_t at = page + cake_kv_value(p->kv, line - over, 0);
    if (p->kv->n_value)
        return latents_of(p, page, pos, n, dtype);
    if (p->kv->dtype == CAKE_F32)
        return (operand){(const float *)p->kv->v + at, 1, dim};
    if (STEP_OF(dtype) == 1) {
        if (p->kv->dtype == CAKE_I8)
            read_values_of_codes(p->page, p->kv, page, line, n);
        else
            read_rows_as_floats(p->page, p->kv, p->kv->v, at, (over + n + step - 1) / step * step, dim);
        return (operand){p->page + over * dim, 1, dim};
    }
    const float *pairs = (const float *)p->kv->v + at / 2;
    float *end = p->page + (n / 2 - 1) * dim;
    if (pos >= p->first && pos + n - 1 <= p->last)
        return (operand){pairs, 1, dim};
    memcpy(p->page, pairs, (size_t)(n / 2 * dim) * sizeof *pairs);
    for (int j = 0; pos < p->first && j < dim; j += LANES)
        vec_store_n(p->page + j, vec_half(vec_load_n(p->page + j, dim - j), true), dim - j);
    for (int j = 0; pos + n - 1 > p->last && j < dim; j += LANES)
        vec_store_n(end + j, vec_half(vec_load_n(end + j, dim - j), false), dim - j);
    return (operand){p->page, 1, dim};
}

/* Positions of [pos, pos + n) that a block computes, in whole steps: up to the last one that any of its
 * queries sees. */
INLINE int lines_of(const sight *s, int pos, int n, const cake_dtype dtype)
{
    int step = STEP_OF(dtype), seen = s->last - pos + 1;
    if (seen <= 0 || s->first >= pos + n)
        return 0;
    return seen < n ? (seen + step - 1) / step * step : n;
}

/* Turns scores of LANES queries from i on into weights, and scales the earlier sums by the growth of the
 * largest score. n: whole steps; masked: there are positions that some query does not see. */
INLINE void weigh_lines(prefill *p, int i, int n, const bool masked, const cake_dtype dtype)
{
    const int step = STEP_OF(dtype);
    vec near = vec_load(p->near + i), far = vec_load(p->far + i);
    vec before = vec_load(p->max + i), most = before, sum = vec_set(0);
    for (int t = 0; t < n; t++) {
        vec score = vec_mul(vec_load(p->score + t * p->width + i), vec_set(p->scale));
        if (p->cap > 0)
            score = vec_soft_cap(score, p->cap);
        if (masked)
            score = vec_between(score, near, vec_set((float)t), far);
        vec_store(p->score + t * p->width + i, score);
        most = vec_max(most, score);
    }
    vec base = vec_max(vec_set(-FLT_MAX), most); /* a query that has seen nothing has no maximum yet */
    for (int t = 0; t < n; t += step) {
        vec weight[2];
        UNROLL for (int s = 0; s < step; s++) weight[s] =
            vec_exp(vec_sub(vec_load(p->score + (t + s) * p->width + i), base));
        step_store(p->score + t / step * p->width + i, weight, dtype);
        UNROLL for (int s = 0; s < step; s++) sum = vec_add(sum, weight[s]);
    }
    vec change = vec_exp(vec_sub(before, base));
    vec_store(p->max + i, most);
    vec_store(p->change + i, change);
    vec_store(p->total + i, vec_fma(vec_load(p->total + i), change, sum));
}

INLINE void weigh_block(prefill *p, int j, int width, int pos, int n, const cake_dtype dtype)
{
    const sight *s = &p->block[j / BLOCK_WIDTH];
    bool masked = s->all_first > pos || s->all_last < pos + n - 1;
    for (int i = j; i < j + width; i++) {
        p->near[i] = (float)(p->from[i] - pos);
        p->far[i] = (float)(p->to[i] - pos);
    }
    for (int i = j; i < j + width; i += LANES)
        if (masked)
            weigh_lines(p, i, n, true, dtype);
        else
            weigh_lines(p, i, n, false, dtype);
}

/* Adds positions [pos, pos + n) to the sums: within one page, in whole steps. */
INLINE void add_lines(prefill *p, int pos, int n, const cake_dtype dtype)
{
    const int step = STEP_OF(dtype);
    int dim = p->kv->head_dim, width = p->width;
    size_t page = cake_kv_page(p->kv, p->slot, pos, p->kv_head);
    const float *key = keys_of(p, page, pos % CAKE_PAGE, dtype);
    for (int j = 0; j < width; j += BLOCK_WIDTH) {
        int wide = width - j < BLOCK_WIDTH ? width - j : BLOCK_WIDTH;
        int lines = lines_of(&p->block[j / BLOCK_WIDTH], pos, n, dtype);
        matrix_add_as(p->score + j, width, key, 1, CAKE_PAGE, p->q + j, width, lines, wide, dim / step, dtype,
                      (tile_start){.zero = true});
        weigh_block(p, j, wide, pos, lines, dtype);
    }
    const operand value = values_of(p, page, pos, n, dtype);
    for (int j = 0; j < width; j += BLOCK_WIDTH) {
        int wide = width - j < BLOCK_WIDTH ? width - j : BLOCK_WIDTH;
        int lines = lines_of(&p->block[j / BLOCK_WIDTH], pos, n, dtype);
        const tile_start start = {.factor = p->change + j};
        if (p->kv->n_value)
            matrix_add_as(p->out + j, width, value.at, value.row, value.col, p->score + j, width,
                          p->kv->n_value, wide, lines / step, dtype, start);
        else /* a row of 1 that the compiler knows is faster */
            matrix_add_as(p->out + j, width, value.at, 1, dim, p->score + j, width, dim, wide, lines / step,
                          dtype, start);
    }
}

/* All positions that any query sees, page by page. */
INLINE void add_pages(prefill *p, const cake_dtype dtype)
{
    int first = p->first / STEP_OF(dtype) * STEP_OF(dtype),
        end = (p->last / STEP_OF(dtype) + 1) * STEP_OF(dtype);
    for (int pos = first, n; pos < end; pos += n) {
        n = CAKE_PAGE - pos % CAKE_PAGE;
        n = end - pos < n ? end - pos : n;
        add_lines(p, pos, n, dtype);
    }
}

static void add_pages_of_floats(prefill *p)
{
    add_pages(p, CAKE_F32);
}

static void add_pages_of_pairs(prefill *p)
{
    add_pages(p, CAKE_BF16);
}

/* Offset of a query's result, and of its first elements. */
static int64_t place_of_query(const queries *in, int64_t query)
{
    return query / in->group * in->first_row + query % in->group * in->first_head;
}

/* Elements of a query as steps. */
static void copy_query(float *to, const prefill *p, const queries *in, int64_t query, cake_dtype dtype)
{
    const float *first = in->first + place_of_query(in, query);
    int dim = p->kv->head_dim, n = dim - in->n_rest;
    float both[PREFILL_DIM];
    if (in->n_rest) {
        const float *rest = in->rest + query / in->group * in->rest_row + query % in->group * in->rest_head;
        memcpy(both, first, (size_t)n * sizeof *both);
        memcpy(both + n, rest, (size_t)in->n_rest * sizeof *both);
    }
    step_copy(to, in->n_rest ? both : first, dim, dtype);
}

/* The next query of a block sees [from, to]. */
static void widen(sight *s, int from, int to, bool begin)
{
    if (begin)
        *s = (sight){from, to, from, to};
    s->first = from < s->first ? from : s->first;
    s->last = to > s->last ? to : s->last;
    s->all_first = from > s->all_first ? from : s->all_first;
    s->all_last = to < s->all_last ? to : s->all_last;
}

/* Sets what the queries see. Padding queries copy the last one. */
static void look_around(prefill *p, const queries *in, const cake_row *rows, int64_t query)
{
    p->first = INT_MAX;
    p->last = 0;
    for (int i = 0; i < p->width; i++) {
        const cake_row *row = rows + (query + (i < p->n ? i : p->n - 1)) / in->group;
        p->from[i] = cake_kv_first(p->kv, row);
        p->to[i] = cake_kv_last(p->kv, row);
        widen(&p->block[i / BLOCK_WIDTH], p->from[i], p->to[i], i % BLOCK_WIDTH == 0);
        p->first = p->from[i] < p->first ? p->from[i] : p->first;
        p->last = p->to[i] > p->last ? p->to[i] : p->last;
        p->max[i] = -INFINITY;
        p->total[i] = 0;
    }
}

/* Loads p->n queries from `query` on. */
static void take_queries(prefill *p, const queries *in, const cake_row *rows, int64_t query)
{
    enum { PITCH = PREFILL_DIM + 2 * LANES };
    float copy[SQUARE * PITCH] = {0};
    cake_dtype dtype = takes_pairs(p->kv) ? CAKE_BF16 : CAKE_F32;
    int dim = p->kv->head_dim, steps = dim / STEP_OF(dtype);
    p->width = (p->n + LANES - 1) / LANES * LANES;
    p->slot = rows->slot;
    look_around(p, in, rows, query);
    for (int i = 0; i < p->width; i += SQUARE) {
        for (int r = 0; r < SQUARE; r++)
            if (i + r < p->n)
                copy_query(copy + r * PITCH, p, in, query + i + r, dtype);
        for (int j = 0; j < steps; j += SQUARE) {
            words8 word[SQUARE];
            transpose_8((const char *)(copy + j), PITCH * sizeof *copy, word);
            for (int r = 0; r < SQUARE; r++)
                memcpy(p->q + (j + r) * p->width + i, &word[r], sizeof word[r]);
        }
    }
    memset(p->out, 0, (size_t)(cake_kv_value_dim(p->kv) * p->width) * sizeof *p->out);
}

/* Stores the results of the queries. */
static void give_means(prefill *p, const queries *in, int64_t query)
{
    int dim = cake_kv_value_dim(p->kv);
    for (int i = 0; i < p->n; i += SQUARE) {
        int n = p->n - i < SQUARE ? p->n - i : SQUARE;
        float *to[SQUARE], factor[SQUARE];
        for (int r = 0; r < n; r++) {
            to[r] = in->out + place_of_query(in, query + i + r);
            int head = in->head + (int)((query + i + r) % in->group);
            factor[r] = 1 / cake_kv_divisor(p->kv, head, p->total[i + r], p->max[i + r]);
            for (int j = 0; j < dim; j += 16) /* prefetched for its turn */
                prefetch_near((const char *)(to[r] + j));
        }
        for (int j = 0; j < dim; j += SQUARE) {
            words8 word[SQUARE];
            transpose_8((const char *)(p->out + j * p->width + i), (size_t)p->width * sizeof *p->out, word);
            for (int r = 0; r < n; r++) {
                const floats8 mean = floats8_mul(floats8_of(word[r]), floats8_set(factor[r]));
                if (dim - j >= SQUARE)
                    floats8_store(to[r] + j, mean);
                else
                    memcpy(to[r] + j, &mean, (size_t)(dim - j) * sizeof *to[r]);
            }
        }
    }
}

static void sum_queries(prefill *p, const queries *in, const cake_row *rows, int64_t query)
{
    take_queries(p, in, rows, query);
    if (takes_pairs(p->kv))
        add_pages_of_pairs(p);
    else
        add_pages_of_floats(p);
    give_means(p, in, query);
}

/* Queries i to i + LANES whose sums are not finite, though their weights are, a bit each. */
static uint32_t lost(const prefill *p, int i)
{
    uint32_t which = 0;
    wholes sizes = whole_set(0);
    for (int j = 0; j < cake_kv_value_dim(p->kv); j++)
        sizes = whole_max(sizes, whole_size(vec_load(p->out + j * p->width + i)));
    const int32_t infinite = 0x7F800000; /* the bits of an infinity */
    if (whole_most(sizes) < infinite)
        return 0;
    int32_t size[LANES];
    memcpy(size, &sizes, sizeof size);
    for (int k = 0; k < LANES; k++)
        which |= (uint32_t)(size[k] >= infinite && p->total[i + k] <= FLT_MAX) << k;
    return which;
}

/* Queries [query, query + p->n) of those of rows from rows[0] on. In a block, a query may be multiplied by a
 * non-finite V that it does not see (0 * NaN). Computed alone it meets only what it sees. */
static void attend_queries(prefill *p, const queries *in, const cake_row *rows, int64_t query)
{
    uint32_t again[STAND / LANES];
    int n = p->n;
    sum_queries(p, in, rows, query);
    for (int i = 0; i < p->width; i += LANES)
        again[i / LANES] = lost(p, i);
    for (int i = 0; n > 1 && i < n; i++)
        if (again[i / LANES] >> i % LANES & 1) {
            p->n = 1;
            sum_queries(p, in, rows, query + i);
        }
}

#endif
