/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations on single rows: norm, rotary embedding, gates, the store into the cache; with the vector
 * functions of vec_*.h, included once by each instruction set's file.
 *
 * Invariant: an element's result depends on its row only. Tails are whole vectors with a mask, so their bits
 * do not depend on the position of a number in its vector.
 */
#ifndef CAKE_KERNELS_CPU_ROW_OPS_H
#define CAKE_KERNELS_CPU_ROW_OPS_H

#include <math.h>
#include <string.h>

#include "kernels/cpu/int4_pack.h"
#include "kernels/cpu/int8_pack.h"
#include "kernels/cpu/pack.h"
#include "kernels/kernels.h"

/* e^x = 2^n (1 + p) for x in [-104.5, 89] to about 1 ulp of p: a polynomial on [-ln 2 / 2, ln 2 / 2], fitted
 * for the minimum relative error. */
INLINE vec vec_exp_parts(vec x, vec *whole)
{
    vec n = vec_round(vec_mul(x, vec_set(0x1.715476p+0f)));
    vec r = vec_fma_less(n, vec_set(0x1.62e4p-1f), x); /* ln 2 in two parts; the first times n is exact */
    r = vec_fma_less(n, vec_set(0x1.7f7d1cp-20f), r);
    vec p = vec_fma(vec_set(0x1.9f085ap-13f), r, vec_set(0x1.6d8d52p-10f));
    p = vec_fma(p, r, vec_set(0x1.111272p-7f));
    p = vec_fma(p, r, vec_set(0x1.55548ep-5f));
    p = vec_fma(p, r, vec_set(0x1.555554p-3f));
    p = vec_fma(p, r, vec_set(0.5f));
    *whole = n;
    return vec_fma(vec_mul(r, r), p, r);
}

/* e^v to about 1 ulp. Zero below the smallest float, infinity above the largest; NaN stays. */
INLINE vec vec_exp(vec v)
{
    vec n, p = vec_exp_parts(vec_min(vec_set(89.0f), vec_max(vec_set(-104.5f), v)), &n);
    return vec_scale(vec_add(p, vec_set(1.0f)), n);
}

INLINE vec vec_silu(vec v)
{
    return vec_div(v, vec_add(vec_set(1), vec_exp(vec_sub(vec_set(0), v))));
}

/* cap tanh(v / cap), by tanh(x) = t / (t + 2) with t = e^2x - 1, which loses nothing near zero. From |x| = 10
 * on it is +-1 in float; NaN stays. */
INLINE vec vec_soft_cap(vec v, float cap)
{
    vec x = vec_div(vec_add(v, v), vec_set(cap));
    vec n, p = vec_exp_parts(vec_min(vec_set(20.0f), vec_max(vec_set(-20.0f), x)), &n);
    vec t = vec_add(vec_scale(p, n), vec_sub(vec_scale(vec_set(1.0f), n), vec_set(1.0f)));
    return vec_mul(vec_set(cap), vec_div(t, vec_add(t, vec_set(2.0f))));
}

/* Partial sums by i modulo CHAINS vectors, folded at the end: the order depends on dim only. Prefetches what
 * follows x, usually the next row. */
static float sum_of_squares(const float *x, int64_t dim)
{
    enum { CHAINS = 4 };
    vec sum[CHAINS] = {vec_set(0), vec_set(0), vec_set(0), vec_set(0)};
    int64_t i = 0;
    for (; i + CHAINS * LANES <= dim; i += CHAINS * LANES)
        UNROLL for (int c = 0; c < CHAINS; c++)
        {
            vec v = vec_load(x + i + c * LANES);
            prefetch_near(x + dim + i + c * LANES);
            sum[c] = vec_fma(v, v, sum[c]);
        }
    for (; i < dim; i += LANES) {
        vec v = vec_load_n(x + i, dim - i < LANES ? (int)(dim - i) : LANES);
        sum[0] = vec_fma(v, v, sum[0]);
    }
    return vec_sum(vec_add(vec_add(sum[0], sum[1]), vec_add(sum[2], sum[3])));
}

static void rmsnorm(const cake_exec *exec, float *out, const float *x, const float *weight,
                    const float *residual, int n_row, int dim, float eps)
{
    int64_t first, last;
    cake_exec_range(exec, n_row, 1, &first, &last);
    for (int64_t row = first; row < last; row++) {
        const float *in = x + row * dim;
        float *to = out + row * dim;
        vec scale = vec_set(1 / sqrtf(sum_of_squares(in, dim) / (float)dim + eps));
        for (int64_t i = 0; i < dim; i += LANES) {
            int n = dim - i < LANES ? (int)(dim - i) : LANES;
            vec v = vec_mul(vec_mul(vec_load_n(in + i, n), scale), vec_load_n(weight + i, n));
            if (residual)
                v = vec_add(v, vec_load_n(residual + row * dim + i, n));
            vec_store_n(to + i, v, n);
        }
    }
}

/* The sum of values, or of the squares of their distances from `mean`; in the order of sum_of_squares. */
static float sum_of(const float *x, int64_t dim, const bool squares, float mean)
{
    enum { CHAINS = 4 };
    vec sum[CHAINS] = {vec_set(0), vec_set(0), vec_set(0), vec_set(0)};
    const vec middle = vec_set(mean);
    int64_t i = 0;
    for (; i + CHAINS * LANES <= dim; i += CHAINS * LANES)
        UNROLL for (int c = 0; c < CHAINS; c++)
        {
            vec v = vec_load(x + i + c * LANES), d = vec_sub(v, middle);
            sum[c] = squares ? vec_fma(d, d, sum[c]) : vec_add(v, sum[c]);
        }
    for (; i < dim; i += LANES) {
        const int n = dim - i < LANES ? (int)(dim - i) : LANES;
        float room[LANES];
        vec_store(room, vec_sub(vec_load_n(x + i, n), middle));
        vec v = vec_load_n(squares ? room : x + i, n); /* nothing behind the end */
        sum[0] = squares ? vec_fma(v, v, sum[0]) : vec_add(v, sum[0]);
    }
    return vec_sum(vec_add(vec_add(sum[0], sum[1]), vec_add(sum[2], sum[3])));
}

static void layernorm(const cake_exec *exec, float *out, const float *x, const float *weight,
                      const float *bias, int n_row, int dim, float eps)
{
    int64_t first, last;
    cake_exec_range(exec, n_row, 1, &first, &last);
    for (int64_t row = first; row < last; row++) {
        const float *in = x + row * dim;
        const float mean = sum_of(in, dim, false, 0) / (float)dim;
        const vec scale = vec_set(1 / sqrtf(sum_of(in, dim, true, mean) / (float)dim + eps));
        for (int64_t i = 0; i < dim; i += LANES) {
            int n = dim - i < LANES ? (int)(dim - i) : LANES;
            vec v = vec_mul(vec_sub(vec_load_n(in + i, n), vec_set(mean)), scale);
            v = vec_mul(v, vec_load_n(weight + i, n));
            if (bias)
                v = vec_add(v, vec_load_n(bias + i, n));
            vec_store_n(out + row * dim + i, v, n);
        }
    }
}

static void combine(const cake_exec *exec, float *out, const float *y, const cake_groups *groups,
                    const float *weight, const float *residual, int n_row, int dim)
{
    int64_t first, last;
    cake_exec_range(exec, n_row, 1, &first, &last);
    for (int64_t row = first; row < last; row++) {
        const int32_t *sorted = groups->sorted + row * groups->stride;
        for (int64_t i = 0; i < dim; i += LANES) {
            int n = dim - i < LANES ? (int)(dim - i) : LANES;
            vec sum = vec_set(0);
            for (int j = 0; j < groups->stride; j++)
                sum = vec_fma(vec_set(weight[row * groups->stride + j]),
                              vec_load_n(y + (int64_t)sorted[j] * dim + i, n), sum);
            if (residual)
                sum = vec_add(sum, vec_load_n(residual + row * dim + i, n));
            vec_store_n(out + row * dim + i, sum, n);
        }
    }
}

/* n elements of a head from `at` on, normalised as by rmsnorm if there is a norm. */
INLINE vec head_load(const float *x, const float *norm, vec scale, int at, int n)
{
    vec v = vec_load_n(x + at, n);
    return norm ? vec_mul(vec_mul(v, scale), vec_load_n(norm + at, n)) : v;
}

/* One head of rope. */
static void rope_head(float *x, const float *norm, float eps, const float *c, const float *s, int dim,
                      int n_rot)
{
    int half = n_rot / 2;
    vec scale = vec_set(norm ? 1 / sqrtf(sum_of_squares(x, dim) / (float)dim + eps) : 1);
    for (int i = 0; i < half; i += LANES) {
        int n = half - i < LANES ? half - i : LANES;
        vec a = head_load(x, norm, scale, i, n), b = head_load(x, norm, scale, half + i, n);
        vec vc = vec_load_n(c + i, n), vs = vec_load_n(s + i, n);
        vec_store_n(x + i, vec_fma_sub(a, vc, vec_mul(b, vs)), n);
        vec_store_n(x + half + i, vec_fma(b, vc, vec_mul(a, vs)), n);
    }
    for (int i = n_rot; norm && i < dim; i += LANES) {
        int n = dim - i < LANES ? dim - i : LANES;
        vec_store_n(x + i, head_load(x, norm, scale, i, n), n);
    }
}

static void rope(const cake_exec *exec, float *x, const float *norm, float eps, const float *cos,
                 const float *sin, int n_row, int n_head, int head_dim, int n_rot)
{
    int64_t first, last;
    int half = n_rot / 2;
    cake_exec_range(exec, (int64_t)n_row * n_head, 1, &first, &last);
    for (int64_t item = first; item < last; item++) {
        int64_t row = item / n_head * half;
        rope_head(x + item * head_dim, norm, eps, cos + row, sin + row, head_dim, n_rot);
    }
}

INLINE vec vec_gelu(vec v)
{
    vec square = vec_fma(vec_mul(v, v), vec_set(CAKE_GELU_CUBE), vec_set(1));
    vec u = vec_mul(vec_mul(vec_set(-2 * CAKE_GELU_SCALE), v), square);
    return vec_div(v, vec_add(vec_set(1), vec_exp(u)));
}

/* v times the normal distribution's integral up to v: q e^(-v^2/2) is its tail on both sides, with q a
 * polynomial in 1 / (1 + p |v| / sqrt 2), the form of Abramowitz and Stegun 7.1.26, fitted for the minimum
 * relative error, 1e-7. */
INLINE vec vec_gelu_erf(vec v)
{
    vec size = vec_max(v, vec_sub(vec_set(0), v));
    vec t = vec_div(vec_set(1), vec_fma(size, vec_set(0.3275911F * CAKE_ROOT_HALF), vec_set(1)));
    vec p = vec_fma(vec_set(-0x1.22f970p-3f), t, vec_set(0x1.0057aep-1f));
    p = vec_fma(p, t, vec_set(-0x1.a6b9fcp-2f));
    p = vec_fma(p, t, vec_set(0x1.d6b62cp-2f));
    p = vec_fma(p, t, vec_set(0x1.67d8a8p-6f));
    p = vec_fma(p, t, vec_set(0x1.a7df7ep-3f));
    p = vec_fma(p, t, vec_set(0x1.71c44ep-3f));
    p = vec_fma(p, t, vec_set(0x1.7b0382p-3f));
    vec half = vec_mul(vec_set(-0.5F), v);
    vec tail = vec_mul(vec_mul(vec_mul(p, t), vec_set(0.5F)), vec_exp(vec_mul(half, v)));
    return vec_mul(v, vec_if_positive(v, vec_sub(vec_set(1), tail), tail));
}

/* x / (1 + e^-g) */
INLINE vec vec_sigmoid_mul(vec x, vec g)
{
    return vec_div(x, vec_add(vec_set(1), vec_exp(vec_sub(vec_set(0), g))));
}

/* (u + 1) h / (1 + e^(-alpha h)) with both clamped; NaN stays. */
INLINE vec vec_clamped(vec x, vec g, vec alpha, vec limit)
{
    vec h = vec_min(limit, g), u = vec_min(limit, vec_max(vec_sub(vec_set(0), limit), x));
    vec e = vec_exp(vec_sub(vec_set(0), vec_mul(alpha, h)));
    return vec_mul(vec_add(u, vec_set(1)), vec_div(h, vec_add(vec_set(1), e)));
}

/* e^v - 1 for v <= 0, which loses nothing near zero; NaN stays. */
INLINE vec vec_expm1(vec v)
{
    vec n, p = vec_exp_parts(vec_max(vec_set(-104.5f), v), &n);
    return vec_add(vec_scale(p, n), vec_sub(vec_scale(vec_set(1), n), vec_set(1)));
}

INLINE vec vec_xielu(vec g, const float *param)
{
    vec above = vec_mul(vec_mul(vec_set(param[CAKE_ALPHA_P]), g), g);
    vec below = vec_sub(vec_expm1(vec_min(vec_set(param[CAKE_EPS]), g)), g);
    below = vec_mul(vec_set(param[CAKE_ALPHA_N]), below);
    return vec_add(vec_if_positive(g, above, below), vec_mul(vec_set(param[CAKE_BETA]), g));
}

/* Prepares rows for products. */
typedef struct entering {
    const float *x;        /* [.., n_in] */
    const cake_gate *gate; /* or NULL */
    int64_t n_in;
    const int32_t *from; /* [rows] the row of x and gate that each row is taken from; NULL: the same */
    int64_t rows;
} entering;

INLINE int64_t entering_at(const entering *in, int64_t row, int64_t k)
{
    return (in->from ? in->from[row] : row) * in->n_in + k;
}

/* Prefetches values [k, k + n) of a row, or what follows it. */
INLINE void enter_soon(const entering *in, int64_t row, int64_t k, int n)
{
    int64_t at = entering_at(in, row, k);
    for (int i = 0; i < n; i += 64 / (int)sizeof *in->x) {
        prefetch_near((const char *)(in->x + at + i));
        if (in->gate)
            prefetch_near((const char *)(in->gate->g + at + i));
    }
}

#define PASS(formula)                                                                                        \
    for (int i = 0; i < n; i += LANES) {                                                                     \
        int m = n - i < LANES ? n - i : LANES;                                                               \
        vec v = alone ? vec_set(1) : vec_load_n(x + i, m), g = vec_load_n(gate + i, m);                      \
        vec_store_n(room + i, formula, m);                                                                   \
    }

/* Values [k, k + n) of a row: in place, or gated, in room [n]. */
static const float *enter(const entering *in, int64_t row, int64_t k, int n, float *room)
{
    int64_t at = entering_at(in, row, k);
    const float *x = in->x + at;
    if (!in->gate)
        return x;
    const float *gate = in->gate->g + at;
    const bool alone = in->gate->alone;
    switch (in->gate->act) {
    case CAKE_ACT_SILU:
        PASS(vec_mul(vec_silu(g), v))
        break;
    case CAKE_ACT_GELU:
        PASS(vec_mul(vec_gelu(g), v))
        break;
    case CAKE_ACT_GELU_ERF:
        PASS(vec_mul(vec_gelu_erf(g), v))
        break;
    case CAKE_ACT_SIGMOID:
        PASS(vec_sigmoid_mul(v, g))
        break;
    case CAKE_ACT_CLAMPED:
        PASS(vec_clamped(v, g, vec_set(in->gate->param[CAKE_ALPHA]), vec_set(in->gate->param[CAKE_LIMIT])))
        break;
    case CAKE_ACT_XIELU:
        for (int i = 0; i < n; i += LANES) {
            int m = n - i < LANES ? n - i : LANES;
            vec_store_n(room + i, vec_xielu(vec_load_n(gate + i, m), in->gate->param), m);
        }
    }
    return room;
}

/* The end of the rows that continue row `first` in its slot. */
static inline int run_end(const cake_row *rows, int first, int n_row)
{
    int end = first + 1;
    while (end < n_row && rows[end].slot == rows[first].slot && rows[end].pos == rows[end - 1].pos + 1)
        end++;
    return end;
}

/* Stores the values of one line, `pair` elements apart. */
static void store_value(const cake_kv *kv, size_t at, const float *in, size_t pair)
{
    uint16_t *to = (uint16_t *)kv->v + at, rounded[LANES];
    for (int i = 0; i < kv->head_dim; i += LANES) {
        int n = kv->head_dim - i < LANES ? kv->head_dim - i : LANES;
        vec value = vec_load_n(in + i, n);
        if (pair == 1) {
            vec_store_as(kv->v, kv->dtype, at + (size_t)i, value, n);
            continue;
        }
        vec_store_as(rounded, CAKE_BF16, 0, value, n);
        for (int j = 0; j < n; j++, to += pair) /* the neighbouring line may be another thread's */
            *to = rounded[j];
    }
}

/* The key of one line: `pair` adjacent elements, the next ones CAKE_PAGE lines further. */
static void store_key(const cake_kv *kv, size_t at, const float *in, size_t pair)
{
    size_t size = cake_dtype_bytes(kv->dtype), unit = pair * size;
    char *to = (char *)kv->k + at * size, rounded[LANES * sizeof(float)];
    for (int i = 0; i < kv->head_dim; i += LANES) {
        int n = kv->head_dim - i < LANES ? kv->head_dim - i : LANES;
        vec_store_as(rounded, kv->dtype, 0, vec_load_n(in + i, n), n);
        for (size_t j = 0; j < (size_t)n * size; j += unit, to += CAKE_PAGE * unit)
            if (unit == 4)
                memcpy(to, rounded + j, 4);
            else
                memcpy(to, rounded + j, 2);
    }
}

/* Elements [first, end) of a line of int8, which have one scale; data: kv->k or kv->v. */
static void store_codes(const cake_kv *kv, void *data, size_t page, int line, const float *in, int first,
                        int end)
{
    const bool key = data == kv->k;
    int8_t *to =
        (int8_t *)data + page + (key ? cake_kv_key(kv, line, first) : cake_kv_value(kv, line, first));
    int8_t code[CAKE_I8_GROUP];
    float factor;
    uint16_t scale = i8_scale(in, CAKE_F32, 0, end - first, &factor);
    memcpy((char *)data + page + cake_kv_scale(kv, line, first > 0), &scale, sizeof scale);
    for (int i = first, n; i < end; i += n, in += n) {
        n = end - i < CAKE_I8_GROUP ? end - i : CAKE_I8_GROUP;
        i8_codes(code, in, CAKE_F32, 0, n, factor);
        for (int j = 0; key && j < n; j++, to += CAKE_PAGE)
            *to = code[j];
        if (!key)
            memcpy(to, code, (size_t)n);
        to += key ? 0 : n;
    }
}

#define HALVES (2 * SQUARE) /* elements of a line of K transposed at a time */

/* Keys of SQUARE adjacent lines, floats or in pairs; rows of `in` are `pitch` apart. The same bits as by
 * store_key, with fewer cache lines touched. */
static void store_keys(const cake_kv *kv, size_t at, const float *in, int64_t pitch)
{
    const size_t pair = (size_t)cake_kv_pair(kv), step = pair == 2 ? HALVES : SQUARE;
    uint32_t *to = (uint32_t *)kv->k + at / pair;
    for (size_t i = 0; i < (size_t)kv->head_dim; i += step, to += SQUARE * CAKE_PAGE) {
        uint16_t rounded[SQUARE][HALVES];
        words8 word[SQUARE];
        for (int r = 0; r < SQUARE && pair == 2; r++)
            for (int j = 0; j < HALVES; j += LANES)
                vec_store_as(rounded[r], CAKE_BF16, (size_t)j, vec_load(in + r * pitch + i + j), LANES);
        if (pair == 2)
            transpose_8((const char *)rounded, sizeof *rounded, word);
        else
            transpose_8((const char *)(in + i), (size_t)pitch * sizeof *in, word);
        UNROLL for (int j = 0; j < SQUARE; j++) words8_store(to + j * CAKE_PAGE, word[j]);
    }
}

/* Values of SQUARE adjacent lines, the same. */
static void store_values(const cake_kv *kv, size_t at, const float *in, int64_t pitch)
{
    for (int r = 0; r < SQUARE && cake_kv_pair(kv) == 1; r++)
        store_value(kv, at + (size_t)(r * kv->head_dim), in + r * pitch, 1);
    if (cake_kv_pair(kv) == 1)
        return;
    uint32_t *to = (uint32_t *)((uint16_t *)kv->v + at);
    for (int r = 0; r < SQUARE; r += 2, in += 2 * pitch, to += kv->head_dim)
        for (int i = 0; i < kv->head_dim; i += LANES)
            vec_store_pairs(to + i, vec_load(in + i), vec_load(in + pitch + i));
}

/* Whether SQUARE rows from rows[0] on are adjacent in a page, in whole pairs, and can be stored together. */
static bool side_by_side(const cake_kv *kv, const cake_row *rows)
{
    int line = rows->pos % CAKE_PAGE;
    bool so = cake_kv_pair(kv) == 2 ? kv->head_dim % HALVES == 0 && line % 2 == 0
                                    : kv->dtype == CAKE_F32 && kv->head_dim % SQUARE == 0;
    so = so && line + SQUARE <= CAKE_PAGE;
    for (int r = 1; so && r < SQUARE; r++)
        so = rows[r].slot == rows->slot && rows[r].pos == rows->pos + r;
    return so;
}

static void kv_store(const cake_exec *exec, const cake_kv *kv, const float *k, const float *v,
                     const cake_row *rows, int n_row)
{
    int64_t first, last, n_kv = kv->n_kv, pitch = n_kv * kv->head_dim;
    cake_exec_range(exec, n_row * n_kv, 1, &first, &last);
    for (int64_t item = first, end; item < last; item = end) {
        const cake_row *row = &rows[item / n_kv];
        int line = row->pos % CAKE_PAGE;
        bool block = item % n_kv == 0 && item + SQUARE * n_kv <= last && side_by_side(kv, row);
        end = (item / n_kv + 1) * n_kv < last ? (item / n_kv + 1) * n_kv : last;
        for (; item < end; item++) {
            size_t pair = (size_t)cake_kv_pair(kv);
            size_t page = cake_kv_page(kv, row->slot, row->pos, (int)(item % n_kv));
            size_t key = page + cake_kv_key(kv, line, 0), value = page + cake_kv_value(kv, line, 0);
            const float *key_in = k + item * kv->head_dim, *value_in = v + item * kv->head_dim;
            if (kv->dtype == CAKE_I8) {
                store_codes(kv, kv->k, page, line, key_in, 0, kv->head_dim);
                store_codes(kv, kv->v, page, line, value_in, 0, kv->head_dim);
            } else if (block) {
                store_keys(kv, key, key_in, pitch);
                store_values(kv, value, value_in, pitch);
            } else {
                store_key(kv, key, key_in, pair);
                store_value(kv, value, value_in, pair);
            }
        }
        end += block ? (SQUARE - 1) * n_kv : 0;
    }
}

static void mark_nonfinite(const cake_exec *exec, cake_row *rows, const float *x, int n_row, int dim,
                           int32_t here, bool ends)
{
    const int32_t infinite = 0x7F800000; /* the bits of an infinity; NaNs are above */
    int64_t first, last;
    cake_exec_range(exec, n_row, 1, &first, &last);
    for (int64_t i = first; i < last; i++) {
        const float *row = x + i * dim;
        wholes sizes = whole_set(0);
        for (int j = 0; j < dim; j += LANES) /* no early exit: most rows are finite */
            sizes = whole_max(sizes, whole_size(vec_load_n(row + j, dim - j < LANES ? dim - j : LANES)));
        if (whole_most(sizes) >= infinite && !rows[i].nonfinite && !(ends && rows[i].no_output))
            rows[i].nonfinite = here;
    }
}

static void convert(void *out, cake_dtype to, const void *in, cake_dtype from, int64_t n)
{
    if (to == CAKE_I8) {
        i8_convert(out, in, from, (int)n);
        return;
    }
    if (to == CAKE_Q8) {
        i4_convert(out, in, from, (int)n);
        return;
    }
    for (int64_t i = 0; i < n; i += LANES) {
        int here = n - i < LANES ? (int)(n - i) : LANES;
        vec_store_as(out, to, (size_t)i, vec_load_as(in, from, (size_t)i, here), here);
    }
}

#endif
