/* SPDX-License-Identifier: Apache-2.0
 *
 * KV caches for tests of attention: pages in any order with float copies of their values, calls of a table's
 * operations, attention in float64, and NaN wherever no row reads.
 */
#ifndef CAKE_TESTS_CACHES_H
#define CAKE_TESTS_CACHES_H

#include <math.h>

#include "kernels/cuda/layout.h"
#include "tables.h"

/* A cache of a few slots whose pages lie in any order, and float copies of what it holds. */
typedef struct cache {
    cake_kv kv;
    int n_slot, length; /* positions of each slot */
    float *k, *v;       /* [n_slot, length, n_kv, head_dim], as the elements hold them */
    int32_t *table;
    size_t bytes; /* of kv.k, and of kv.v */
} cache;

typedef struct call {
    const cake_kernels *op;
    const cake_kv *kv;
    const cake_row *rows;
    int n_row, n_head;
    float *out;
    const float *q, *k, *v;
    float scale, cap;
} call;

static inline void run_store(const cake_exec *exec, void *arg)
{
    call *c = arg;
    c->op->kv_store(exec, c->kv, c->k, c->v, c->rows, c->n_row);
}

static inline void run_attend(const cake_exec *exec, void *arg)
{
    call *c = arg;
    c->op->attend(exec, c->out, c->q, c->kv, c->rows, c->n_row, c->n_head, c->scale, c->cap);
}

/* The dtypes from 0 on that caches of this table may have. */
static inline int cache_dtypes(const cake_kernels *op)
{
    return op->oracle ? CAKE_N_KEPT : CAKE_N_DTYPE;
}

/* Elements of a head's part of a page, in int8 with BF16 scales. */
static inline size_t part_size(cake_dtype dtype, int head_dim, int n_value)
{
    return (size_t)(CAKE_PAGE * (head_dim + (dtype != CAKE_I8 ? 0 : n_value ? 4 : 2)));
}

/* Pages are dealt out in an order that `order` decides. Unused lines of pages hold NaN. */
static inline cache cache_open_latents(cake_dtype dtype, int n_slot, int length, int n_kv, int head_dim,
                                       int n_value, uint64_t order)
{
    int stride = (length + CAKE_PAGE - 1) / CAKE_PAGE + 1, n_page = n_slot * stride;
    size_t n = (size_t)(n_page * n_kv) * part_size(dtype, head_dim, n_value);
    cache c = {.n_slot = n_slot, .length = length, .bytes = n * cake_dtype_bytes(dtype)};
    c.table = cake_alloc((size_t)n_page, sizeof *c.table);
    for (int i = 0; i < n_page; i++)
        c.table[i] = i;
    for (int i = n_page - 1; order && i > 0; i--) {
        int j = (int)(next_random(&order) % (uint64_t)(i + 1));
        int32_t page = c.table[i];
        c.table[i] = c.table[j];
        c.table[j] = page;
    }
    int64_t step = n_kv * (int64_t)part_size(dtype, head_dim, n_value);
    c.kv = (cake_kv){.k = malloc(c.bytes),
                     .v = malloc(c.bytes),
                     .page_step = step,
                     .dtype = dtype,
                     .n_kv = n_kv,
                     .head_dim = head_dim,
                     .table = c.table,
                     .stride = stride,
                     .n_value = n_value};
    CU_ASSERT_FATAL(c.kv.k && c.kv.v);
    memset(c.kv.k, 0xFF, c.bytes); /* NaN in every dtype, in int8 as a scale */
    memset(c.kv.v, 0xFF, c.bytes);
    size_t held = (size_t)n_slot * (size_t)(length * n_kv * head_dim);
    c.k = random_floats(held, 1);
    c.v = random_floats(held, 2);
    return c;
}

static inline cache cache_open(cake_dtype dtype, int n_slot, int length, int n_kv, int head_dim,
                               uint64_t order)
{
    return cache_open_latents(dtype, n_slot, length, n_kv, head_dim, 0, order);
}

static inline void cache_close(cache *c)
{
    free(c->kv.k);
    free(c->kv.v);
    free(c->k);
    free(c->v);
    free(c->table);
}

/* code [n] and the scale of x [n] as int8 has them, by division in float64; each x[i] becomes what is held.
 * The scale is the BF16 nearest to the largest |x| / 127. */
static inline uint16_t quantize(float *x, int n, int8_t *code)
{
    float most = 0;
    bool finite = true;
    for (int i = 0; i < n; i++) {
        finite = finite && isfinite(x[i]);
        most = fmaxf(most, fabsf(x[i]));
    }
    uint16_t bits = cake_bf16_from_f32(!finite ? NAN : most < 0x1p-100F ? 0 : most / 127);
    float scale = cake_bf16_to_f32(bits);
    for (int i = 0; i < n; i++) {
        code[i] = (int8_t)(scale > 0 ? fmax(-127, fmin(127, nearbyint((double)x[i] / (double)scale))) : 0);
        x[i] = (float)code[i] * scale;
    }
    return bits;
}

/* x [n_line, head_dim] becomes what the cache holds of it. */
static inline void hold(float *x, size_t n_line, const cake_kv *kv)
{
    int8_t code[1024];
    const int dim = kv->head_dim, n_value = kv->n_value ? kv->n_value : dim;
    if (kv->dtype != CAKE_I8)
        free(as_dtype(x, n_line * (size_t)dim, kv->dtype));
    for (size_t i = 0; i < n_line && kv->dtype == CAKE_I8; i++, x += dim) {
        quantize(x, n_value, code);
        quantize(x + n_value, dim - n_value, code);
    }
}

/* Stores all positions of all slots, and rounds the copies as the cache does. */
static inline void cache_fill(const cake_kernels *op, cache *c, int team)
{
    int n_row = c->n_slot * c->length;
    cake_row *rows = cake_alloc((size_t)n_row, sizeof *rows);
    for (int i = 0; i < n_row; i++)
        rows[i] = (cake_row){i / c->length, i % c->length, CAKE_ROW_PROMPT, 0, 0, 0};
    call store = {.op = op, .kv = &c->kv, .rows = rows, .n_row = n_row, .k = c->k, .v = c->v};
    cake_exec_run(team, run_store, &store);
    hold(c->k, (size_t)(n_row * c->kv.n_kv), &c->kv);
    hold(c->v, (size_t)(n_row * c->kv.n_kv), &c->kv);
    free(rows);
}

/* Where element j of a position's key and value stands, in elements from kv.k and kv.v: plain lines, and
 * pairs; and the scale of both. */
typedef struct place {
    size_t key, value, scale;
} place;

static inline place place_of(const cache *c, int slot, int pos, int head, int j)
{
    const cake_kv *kv = &c->kv;
    size_t dim = (size_t)kv->head_dim, line = (size_t)(pos % CAKE_PAGE), i = (size_t)j;
    size_t page = (size_t)c->table[slot * kv->stride + pos / CAKE_PAGE] * (size_t)kv->page_step +
                  (size_t)head * part_size(kv->dtype, kv->head_dim, kv->n_value);
    size_t scale = page + CAKE_PAGE * dim + 2 * line + (kv->n_value && j >= kv->n_value ? 2 * CAKE_PAGE : 0);
    if (kv->dtype != CAKE_BF16 || dim % 2)
        return (place){page + i * CAKE_PAGE + line, page + line * dim + i, scale};
    return (place){page + (i / 2 * CAKE_PAGE + line) * 2 + i % 2, page + (line / 2 * dim + i) * 2 + line % 2,
                   0};
}

/* Whether the table rounds q and weights to BF16 when it meets this cache. */
static inline bool rounds(const cake_kernels *op, const cake_kv *kv)
{
    if (!op->oracle)
        return kv->dtype == CAKE_BF16 && cake_cuda_tiles(kv->head_dim);
    return strstr(op->name, "bf16") && kv->dtype == CAKE_BF16 && kv->head_dim % 2 == 0 &&
           kv->head_dim <= CAKE_LATENT_DIM;
}

/* out [head_dim] and the largest |score| before the cap, for one query head of one row, which has this
 * sink. */
static inline double attend_double(const cache *c, const cake_row *row, const float *q, int head,
                                   const float *sink, const call *how, double *out)
{
    const int dim = c->kv.head_dim, window = how->kv->window, ahead = row->pos + window;
    const int begin = window && row->pos + 1 > window ? row->pos + 1 - window : 0;
    const int n = !how->kv->both_ways               ? row->pos + 1
                  : window && ahead < row->rope_len ? ahead
                                                    : row->rope_len;
    double *weight = cake_alloc((size_t)n, sizeof *weight), most = -INFINITY, least = INFINITY, total = 0;
    for (int i = begin; i < n; i++) {
        const float *k = c->k + (((int64_t)row->slot * c->length + i) * c->kv.n_kv + head) * dim;
        for (int j = 0; j < dim; j++)
            weight[i] += (double)q[j] * (double)k[j];
        weight[i] *= (double)how->scale;
        most = weight[i] > most ? weight[i] : most;
        least = weight[i] < least ? weight[i] : least;
        if (how->cap > 0)
            weight[i] = (double)how->cap * tanh(weight[i] / (double)how->cap);
    }
    for (int j = 0; j < dim; j++)
        out[j] = 0;
    if (sink)
        total = exp((double)*sink - (how->cap > 0 ? 0 : most));
    for (int i = begin; i < n; i++) {
        const float *v = c->v + (((int64_t)row->slot * c->length + i) * c->kv.n_kv + head) * dim;
        double w = exp(weight[i] - (how->cap > 0 ? 0 : most));
        total += w;
        for (int j = 0; j < dim; j++)
            out[j] += w * (double)v[j];
    }
    for (int j = 0; j < dim; j++)
        out[j] /= total;
    free(weight);
    return fmax(fabs(most), fabs(least));
}

/* How many of out [n] are too far from exact. For a row at pos, whose keys have dim elements and whose scores
 * are `size` at most; rounded: weights are, to BF16. */
static inline int far_elements(const float *out, const double *exact, int n, double size, int dim, int pos,
                               bool rounded)
{
    int wrong = 0;
    /* |v| <= 1: what scores lose weighs double, and long chains of sums lose a little each. */
    double bound = 0x1p-24 * (2 * (size + 1) * (dim / 4 + 2) + sqrt(pos + 1) + 32);
    /* Weights w that are rounded are off by w 2^-9 at most. The mean of v moves by the mean of these errors
     * times v - mean: |v - mean| is at most 1 on average, since the mean of v^2 is. */
    bound += rounded ? 0x1.02p-9 : 0;
    for (int j = 0; j < n; j++)
        wrong += !(fabs((double)out[j] - exact[j]) <= bound);
    return wrong;
}

/* Elements too far from float64; of many queries every seventh is looked at. */
static inline int attend_errors(const call *c, const cache *from)
{
    int dim = from->kv.head_dim, group = c->n_head / from->kv.n_kv, wrong = 0;
    double *exact = cake_alloc((size_t)dim, sizeof *exact);
    bool rounded = rounds(c->op, c->kv);
    size_t n = (size_t)(c->n_row * c->n_head * dim);
    float *q = copy_floats(c->q, n);
    if (rounded)
        free(as_dtype(q, n, CAKE_BF16));
    for (int i = 0; i<c->n_row * c->n_head; i += c->n_row * c->n_head> 300 ? 7 : 1) {
        const cake_row *row = &c->rows[i / c->n_head];
        double size = attend_double(from, row, q + (int64_t)i * dim, i % c->n_head / group,
                                    c->kv->sink ? &c->kv->sink[i % c->n_head] : NULL, c, exact);
        wrong += far_elements(c->out + (int64_t)i * dim, exact, dim, size, dim, row->pos, rounded);
    }
    free(exact);
    free(q);
    return wrong;
}

static inline bool line_seen(const cache *c, const cake_row *row, int n_row, int slot, int pos)
{
    int stride = c->kv.stride, page = pos / CAKE_PAGE;
    for (int i = 0; i < n_row; i++)
        if (c->table[row[i].slot * stride + page] == c->table[slot * stride + page] && pos <= row[i].pos &&
            cake_kv_first(&c->kv, &row[i]) <= pos)
            return true;
    return false;
}

/* Lines that no row sees may belong to other sequences, also inside of pages with seen lines: they become
 * NaN. */
static inline void spoil(cache *c, const cake_row *row, int n_row)
{
    size_t size = cake_dtype_bytes(c->kv.dtype);
    for (int slot = 0; slot < c->n_slot; slot++)
        for (int pos = 0; pos < c->kv.stride * CAKE_PAGE; pos++) {
            if (line_seen(c, row, n_row, slot, pos))
                continue;
            for (int i = 0; i < c->kv.n_kv * c->kv.head_dim; i++) {
                place at = place_of(c, slot, pos, i / c->kv.head_dim, i % c->kv.head_dim);
                memset((char *)c->kv.k + at.key * size, 0xFF, size);
                memset((char *)c->kv.v + at.value * size, 0xFF, size);
                if (c->kv.dtype == CAKE_I8) {
                    memset((char *)c->kv.k + at.scale, 0xFF, sizeof(uint16_t));
                    memset((char *)c->kv.v + at.scale, 0xFF, sizeof(uint16_t));
                }
            }
        }
}

/* Every row alone, by a team of one. */
static inline void attend_rows_alone(const call *c, float *out)
{
    int64_t size = (int64_t)c->n_head * c->kv->head_dim;
    for (int i = 0; i < c->n_row; i++) {
        call one = *c;
        one.out = out + i * size;
        one.q = c->q + i * size;
        one.rows = c->rows + i;
        one.n_row = 1;
        cake_exec_run(1, run_attend, &one);
    }
}

#endif
