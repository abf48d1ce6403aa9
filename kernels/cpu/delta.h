/* SPDX-License-Identifier: Apache-2.0
 *
 * The gated delta rule, its convolution and gates, written with vec_*.h; included once by each instruction
 * set's file.
 *
 * In: rows and the states of their slots. Out: the rows' outputs, the states after them. A piece of work is
 * one value head of one slot's rows. Prompt rows go in blocks of 64 positions: the changes of the state by
 * the rows of a block are the solution of a triangular system (the WY form of Yang et al. 2024, section 3.2,
 * with decays as in their 2025 paper), so that the state is read and written once a block; other rows go one
 * by one.
 *
 * Invariant: the bits of a row depend on its sequence and on its place in its block, never on the wave.
 */
#ifndef CAKE_KERNELS_CPU_DELTA_H
#define CAKE_KERNELS_CPU_DELTA_H

#include <math.h>
#include <string.h>

#include "kernels/cpu/row_ops.h"
#include "kernels/cpu/small_gemm.h"

#define BLOCK         CAKE_PAGE
#define CONV_CHANNELS 256               /* channels whose weights are transposed at a time */
#define STEP_VECTORS  (N_REGISTERS / 8) /* vectors of a state's columns processed together */
#define CONV_VECTORS  (N_REGISTERS / 8) /* vectors of channels processed together */
#define CONV_AHEAD    8                 /* distance of prefetching, in rows */

/* x [n, channels] of one run, vectors * LANES channels of it, in place; inputs [width - 1, channels] are
 * those before the run, then those at its end. The last inputs stay in registers: a row is read once and
 * written once, and rows, which lie pages apart, are fetched ahead. weight [width, CONV_CHANNELS]; the last
 * vector has m lanes. */
INLINE void convolve_strip(float *x, float *inputs, int64_t channels, const float *weight, int n,
                           const int width, const int vectors, const int m)
{
    vec before[CAKE_DELTA_WIDTH * CONV_VECTORS];
    const int last = width < CAKE_DELTA_WIDTH ? width - 1 : CAKE_DELTA_WIDTH - 1;
    UNROLL for (int j = 0; j < last; j++) UNROLL for (int v = 0; v < vectors; v++) before[j * vectors + v] =
        vec_load_n(inputs + j * channels + v * LANES, m);
    for (int t = 0; t < n; t++, x += channels) {
        if (t + CONV_AHEAD < n)
            UNROLL for (int v = 0; v < vectors; v++)
                prefetch_near((const char *)(x + CONV_AHEAD * channels + v * LANES));
        UNROLL for (int v = 0; v < vectors; v++)
        {
            vec sum = vec_set(0), now = vec_load_n(x + v * LANES, m);
            UNROLL for (int j = 0; j < last; j++) sum =
                vec_fma(vec_load(weight + j * CONV_CHANNELS + v * LANES), before[j * vectors + v], sum);
            sum = vec_fma(vec_load(weight + last * CONV_CHANNELS + v * LANES), now, sum);
            UNROLL for (int j = 0; j < last - 1; j++) before[j * vectors + v] = before[(j + 1) * vectors + v];
            if (last > 0)
                before[(last - 1) * vectors + v] = now;
            vec_store_n(x + v * LANES, vec_silu(sum), m);
        }
    }
    UNROLL for (int j = 0; j < last; j++) UNROLL for (int v = 0; v < vectors; v++)
        vec_store_n(inputs + j * channels + v * LANES, before[j * vectors + v], m);
}

INLINE void convolve_run(float *x, float *inputs, int64_t channels, const float *weight, int n, int n_channel,
                         const int width)
{
    int c = 0;
    for (; c + CONV_VECTORS * LANES <= n_channel; c += CONV_VECTORS * LANES)
        convolve_strip(x + c, inputs + c, channels, weight + c, n, width, CONV_VECTORS, LANES);
    for (; c < n_channel; c += LANES)
        convolve_strip(x + c, inputs + c, channels, weight + c, n, width, 1,
                       n_channel - c < LANES ? n_channel - c : LANES);
}

static void delta_conv(const cake_exec *exec, float *x, const cake_deltanet *d, const cake_row *rows,
                       int n_row)
{
    enum { USUAL = 4 }; /* the width of all known models; others are correct, but slower */
    float weight[CAKE_DELTA_WIDTH * CONV_CHANNELS];
    int64_t first, last, channels = cake_delta_channels(d);
    cake_exec_range(exec, channels, LANES, &first, &last);
    for (int64_t c = first; c < last; c += CONV_CHANNELS) {
        int n_channel = last - c < CONV_CHANNELS ? (int)(last - c) : CONV_CHANNELS;
        memset(weight, 0, sizeof weight);
        for (int i = 0; i < n_channel; i++)
            for (int j = 0; j < d->width; j++)
                weight[j * CONV_CHANNELS + i] = d->conv[(c + i) * d->width + j];
        for (int t = 0, end; t < n_row; t = end) {
            float *inputs = d->state + rows[t].slot * d->step + cake_delta_rule_size(d) + c;
            float *at = x + t * channels + c;
            end = run_end(rows, t, n_row);
            for (int j = 0; rows[t].pos == 0 && j < d->width - 1; j++)
                memset(inputs + j * channels, 0, (size_t)n_channel * sizeof *inputs);
            if (d->width == USUAL)
                convolve_run(at, inputs, channels, weight, end - t, n_channel, USUAL);
            else
                convolve_run(at, inputs, channels, weight, end - t, n_channel, d->width);
        }
    }
}

/* log(1 + e^x) to about 2 ulp: max(x, 0) + log1p(e^-|x|), the latter as twice the series of atanh. */
INLINE vec vec_softplus(vec x)
{
    vec u = vec_exp(vec_sub(vec_set(0), vec_max(x, vec_sub(vec_set(0), x))));
    vec s = vec_div(u, vec_add(vec_set(2), u));
    vec z = vec_mul(s, s);
    vec p = vec_fma(vec_set(1 / 15.0f), z, vec_set(1 / 13.0f));
    p = vec_fma(p, z, vec_set(1 / 11.0f));
    p = vec_fma(p, z, vec_set(1 / 9.0f));
    p = vec_fma(p, z, vec_set(1 / 7.0f));
    p = vec_fma(p, z, vec_set(1 / 5.0f));
    p = vec_fma(p, z, vec_set(1 / 3.0f));
    p = vec_fma(vec_mul(p, z), s, s);
    return vec_add(vec_max(vec_set(0), x), vec_add(p, p));
}

/* One value head and some rows of one slot: pointers, and intermediate results. */
typedef struct delta_head {
    const cake_deltanet *d;
    const float *q, *k, *v; /* of the first row; the next ones are `channels` on */
    const float *a, *b;     /* of the first row; the next ones are n_value on */
    float a_log, dt_bias;
    float *state; /* [key_dim, value_dim] */
    float *out;   /* of the first row; the next ones are n_value * value_dim on */
    int n;
    float decay[BLOCK]; /* in logarithms */
    float beta[BLOCK];
    /* of a block */
    float since[BLOCK];       /* decay from before the block until the row */
    float until[BLOCK];       /* from the row until the block's end */
    float own[BLOCK * BLOCK]; /* [i, j < i] influence of row j's change on row i's */
    float see[BLOCK * BLOCK]; /* [i, j <= i] weight of row j's change in row i's output */
    float unit_q[BLOCK * CAKE_DELTA_DIM], unit_k[BLOCK * CAKE_DELTA_DIM]; /* [n, key_dim] */
    float transposed[CAKE_DELTA_DIM * BLOCK];                             /* unit_k [key_dim, BLOCK] */
    float change[BLOCK * CAKE_DELTA_DIM]; /* [n, value_dim] the change that each row writes at its key */
} delta_head;

INLINE void scale_row(float *to, const float *from, int dim, float factor)
{
    for (int i = 0; i < dim; i += LANES) {
        int n = dim - i < LANES ? dim - i : LANES;
        vec_store_n(to + i, vec_mul(vec_load_n(from + i, n), vec_set(factor)), n);
    }
}

static void read_rows(delta_head *h, float scale)
{
    const cake_deltanet *d = h->d;
    int64_t channels = cake_delta_channels(d), dim = d->key_dim;
    for (int t = 0; t < h->n; t++) {
        const float *q = h->q + t * channels, *k = h->k + t * channels;
        scale_row(h->unit_q + t * dim, q, d->key_dim, scale / sqrtf(sum_of_squares(q, dim) + 1e-6f));
        scale_row(h->unit_k + t * dim, k, d->key_dim, 1 / sqrtf(sum_of_squares(k, dim) + 1e-6f));
        h->decay[t] = h->a[(int64_t)t * d->n_value];
        h->beta[t] = h->b[(int64_t)t * d->n_value];
    }
    vec rate = vec_sub(vec_set(0), vec_exp(vec_set(h->a_log)));
    for (int t = 0; t < h->n; t += LANES) {
        int n = h->n - t < LANES ? h->n - t : LANES;
        vec soft = vec_softplus(vec_add(vec_load_n(h->decay + t, n), vec_set(h->dt_bias)));
        vec_store_n(h->decay + t, vec_mul(rate, soft), n);
        vec below = vec_add(vec_set(1), vec_exp(vec_sub(vec_set(0), vec_load_n(h->beta + t, n))));
        vec_store_n(h->beta + t, vec_div(vec_set(1), below), n);
    }
}

/* own and see, before decay: products of keys, and of queries with keys, up to the diagonal's tile. */
static void compare_rows(delta_head *h)
{
    int dim = h->d->key_dim;
    for (int t = 0; t < h->n; t++)
        for (int i = 0; i < dim; i++)
            h->transposed[i * BLOCK + t] = h->unit_k[t * dim + i];
    memset(h->own, 0, sizeof h->own);
    memset(h->see, 0, sizeof h->see);
    for (int i = 0; i < h->n; i += TILE_ROWS) {
        int m = h->n - i < TILE_ROWS ? h->n - i : TILE_ROWS;
        matrix_add(h->own + i * BLOCK, BLOCK, h->unit_k + i * dim, dim, 1, h->transposed, BLOCK, m, i + m,
                   dim);
        matrix_add(h->see + i * BLOCK, BLOCK, h->unit_q + i * dim, dim, 1, h->transposed, BLOCK, m, i + m,
                   dim);
    }
}

/* Decays between any two rows. They are summed up from the later row on, each for itself: differences of sums
 * from the block's start would lose their last digits to the sums' size. */
static void decay_rows(delta_head *h)
{
    _Alignas(64) float sum[BLOCK] = {0}, factor[BLOCK];
    float all = 0;
    for (int i = 0; i < h->n; i++) {
        all += h->decay[i];
        h->since[i] = all;
        for (int j = 0; j < i; j++)
            sum[j] += h->decay[i];
        for (int j = 0; j <= i; j += LANES)
            vec_store(factor + j, vec_exp(vec_load(sum + j)));
        for (int j = 0; j < i; j++) {
            h->own[i * BLOCK + j] *= -h->beta[i] * factor[j];
            h->see[i * BLOCK + j] *= factor[j];
        }
        for (int j = i + 1; j < BLOCK && j < i + TILE_ROWS; j++)
            h->see[i * BLOCK + j] = 0;
    }
    for (int i = 0; i < h->n; i += LANES) {
        int n = h->n - i < LANES ? h->n - i : LANES;
        vec_store_n(h->since + i, vec_exp(vec_load_n(h->since + i, n)), n);
        vec_store_n(h->until + i, vec_exp(vec_load_n(sum + i, n)), n);
    }
}

/* change_i = beta_i (v_i - since_i k_i S) + sum over j < i of own_ij change_j */
static void solve_rows(delta_head *h)
{
    int64_t key = h->d->key_dim, value = h->d->value_dim, channels = cake_delta_channels(h->d);
    int dim = h->d->value_dim;
    for (int i = 0; i < h->n; i++) {
        memcpy(h->change + i * value, h->v + i * channels, (size_t)value * sizeof *h->v);
        scale_row(h->unit_k + i * key, h->unit_k + i * key, (int)key, -h->since[i]);
    }
    matrix_add(h->change, value, h->unit_k, key, 1, h->state, value, h->n, dim, (int)key);
    for (int i = 0; i < h->n; i++)
        scale_row(h->change + i * value, h->change + i * value, dim, h->beta[i]);
    for (int i = 0; i < h->n; i += TILE_ROWS) {
        int m = h->n - i < TILE_ROWS ? h->n - i : TILE_ROWS;
        float *to = h->change + i * value;
        matrix_add(to, value, h->own + i * BLOCK, BLOCK, 1, h->change, value, m, dim, i);
        for (int r = 1; r < m; r++)
            matrix_add(to + r * value, value, h->own + (i + r) * BLOCK + i, BLOCK, 1, to, value, 1, dim, r);
    }
}

/* out_i = since_i q_i S + sum over j <= i of see_ij change_j; then the state after the block. */
static void finish_rows(delta_head *h)
{
    const cake_deltanet *d = h->d;
    int64_t key = d->key_dim, value = d->value_dim, pitch = d->n_value * value;
    int dim = d->value_dim, n = h->n;
    for (int i = 0; i < n; i++) {
        scale_row(h->unit_q + i * key, h->unit_q + i * key, d->key_dim, h->since[i]);
        memset(h->out + i * pitch, 0, (size_t)value * sizeof *h->out);
    }
    matrix_add(h->out, pitch, h->unit_q, key, 1, h->state, value, n, dim, d->key_dim);
    for (int i = 0; i < n; i += TILE_ROWS) {
        int m = n - i < TILE_ROWS ? n - i : TILE_ROWS;
        matrix_add(h->out + i * pitch, pitch, h->see + i * BLOCK, BLOCK, 1, h->change, value, m, dim, i + m);
    }
    scale_row(h->state, h->state, (int)(key * value), h->since[n - 1]);
    for (int i = 0; i < d->key_dim; i++)
        for (int t = 0; t < n; t++)
            h->transposed[i * BLOCK + t] *= h->until[t];
    matrix_add(h->state, value, h->transposed, BLOCK, 1, h->change, value, d->key_dim, dim, n);
}

/* One row: columns [j, j + vectors * LANES) of state and output, of which the last vector has n. */
INLINE void step_strip(delta_head *h, int64_t j, const int vectors, int n)
{
    int64_t value = h->d->value_dim;
    vec seen[STEP_VECTORS], sum[STEP_VECTORS], decay = vec_exp(vec_set(h->decay[0]));
    float *state = h->state + j;
    UNROLL for (int v = 0; v < vectors; v++) seen[v] = sum[v] = vec_set(0);
    for (int i = 0; i < h->d->key_dim; i++)
        UNROLL for (int v = 0; v < vectors; v++) seen[v] =
            vec_fma(vec_set(h->unit_k[i]), vec_load_n(state + i * value + v * LANES, n), seen[v]);
    UNROLL for (int v = 0; v < vectors; v++) /* the value it reads becomes the one it writes */
        seen[v] =
            vec_mul(vec_set(h->beta[0]), vec_fma_less(decay, seen[v], vec_load_n(h->v + j + v * LANES, n)));
    for (int i = 0; i < h->d->key_dim; i++)
        UNROLL for (int v = 0; v < vectors; v++)
        {
            float *at = state + i * value + v * LANES;
            vec now = vec_fma(vec_set(h->unit_k[i]), seen[v], vec_mul(decay, vec_load_n(at, n)));
            vec_store_n(at, now, n);
            sum[v] = vec_fma(vec_set(h->unit_q[i]), now, sum[v]);
        }
    UNROLL for (int v = 0; v < vectors; v++) vec_store_n(h->out + j + v * LANES, sum[v], n);
}

static void step_row(delta_head *h)
{
    int64_t j = 0, value = h->d->value_dim;
    for (; j + STEP_VECTORS * LANES <= value; j += STEP_VECTORS * LANES)
        step_strip(h, j, STEP_VECTORS, LANES);
    for (; j < value; j += LANES)
        step_strip(h, j, 1, value - j < LANES ? (int)(value - j) : LANES);
}

/* Rows [t, end) of one slot and value head. */
static void delta_run(delta_head *h, const float *x, const float *a, const float *b, float *out, int head,
                      const cake_row *rows, int t, int end)
{
    const cake_deltanet *d = h->d;
    int64_t channels = cake_delta_channels(d), size = (int64_t)d->key_dim * d->value_dim;
    int64_t key = (int64_t)cake_delta_key_head(d, head) * d->key_dim;
    int64_t keys = (int64_t)d->n_key * d->key_dim, value = (int64_t)head * d->value_dim;
    h->a_log = d->a_log[head];
    h->dt_bias = d->dt_bias[head];
    h->state = d->state + rows[t].slot * d->step + head * size;
    if (rows[t].pos == 0)
        memset(h->state, 0, (size_t)size * sizeof *h->state);
    for (; t < end; t += h->n) {
        bool prompt = rows[t].kind == CAKE_ROW_PROMPT;
        int most = prompt ? BLOCK - rows[t].pos % BLOCK : 1;
        for (h->n = 1; h->n < most && t + h->n < end && rows[t + h->n].kind == CAKE_ROW_PROMPT;)
            h->n++;
        h->q = x + t * channels + key;
        h->k = h->q + keys;
        h->v = x + t * channels + 2 * keys + value;
        h->a = a + (int64_t)t * d->n_value + head;
        h->b = b + (int64_t)t * d->n_value + head;
        h->out = out + (int64_t)t * d->n_value * d->value_dim + value;
        read_rows(h, 1 / sqrtf((float)d->key_dim));
        if (!prompt) {
            step_row(h);
            continue;
        }
        compare_rows(h);
        decay_rows(h);
        solve_rows(h);
        finish_rows(h);
    }
}

static void delta_rule(const cake_exec *exec, float *out, const float *x, const float *a, const float *b,
                       const cake_deltanet *d, const cake_row *rows, int n_row)
{
    _Static_assert(sizeof(delta_head) <= CAKE_SCRATCH_BYTES, "a head fits its scratch");
    delta_head *h = cake_exec_scratch();
    int64_t item = 0;
    h->d = d;
    for (int t = 0, end; t < n_row; t = end) {
        end = run_end(rows, t, n_row);
        for (int head = 0; head < d->n_value; head++)
            if (item++ % exec->size == exec->rank)
                delta_run(h, x, a, b, out, head, rows, t, end);
    }
}

static void rmsnorm_gated(const cake_exec *exec, float *x, const float *gate, const float *weight, int n_row,
                          int dim, float eps)
{
    int64_t first, last;
    cake_exec_range(exec, n_row, 1, &first, &last);
    for (int64_t row = first; row < last; row++) {
        float *at = x + row * dim;
        vec scale = vec_set(1 / sqrtf(sum_of_squares(at, dim) / (float)dim + eps));
        for (int i = 0; i < dim; i += LANES) {
            int n = dim - i < LANES ? dim - i : LANES;
            vec v = vec_mul(vec_mul(vec_load_n(at + i, n), scale), vec_load_n(weight + i, n));
            vec_store_n(at + i, vec_mul(v, vec_silu(vec_load_n(gate + row * dim + i, n))), n);
        }
    }
}

#endif
