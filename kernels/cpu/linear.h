/* SPDX-License-Identifier: Apache-2.0
 *
 * The matrix product, in the words of vec_*.h and step_*.h; included once by each instruction set's file.
 *
 * In: rows x [n_tok, n_in], a packed matrix. Out: [n_tok, n_out]. A packed matrix is panels of PANEL columns;
 * in a panel the columns' weights of step 0 stand together, then those of step 1, and so on (step_load says
 * how the columns of one step take turns). A step is as many values of k as an instruction adds up at once,
 * STEP_OF(dtype): one, or two. Columns and values of k behind the matrix are zero.
 *
 * Invariant: an output is one chain of fused multiply-adds, steps ascending from 0; where the chain pauses between
 * blocks of k its float32 waits in memory unchanged. So neither the blocks below nor the width of a vector shows
 * in the bits. Weights are read from memory once: a block of them (GROUP panels, DEPTH values of k) stays in
 * cache while all rows pass.
 */
#ifndef CAKE_KERNELS_CPU_LINEAR_H
#define CAKE_KERNELS_CPU_LINEAR_H

#include <string.h>

#include "base/arena.h"
#include "kernels/cpu/int8.h"
#include "kernels/cpu/pack.h"
#include "kernels/kernels.h"

#define GROUP 8    /* panels that share a copy of x */
#define DEPTH 512  /* values of k of a block, whole steps */
#define WHOLE 3072 /* of one where all rows pass at once, and nothing has to wait in cache for others */
#define PITCH (WHOLE + 16) /* of a copy of x: rows a multiple of 4 KB apart displace each other in cache */
#define ROWS  240          /* rows whose chains may wait at the same time */
#define AHEAD 1536         /* bytes that weights are fetched before their use */

/* Sums that fit the registers beside one pair of weights and one value of x: 24 of 32, 12 of 16. */
#define N_SUM    (N_REGISTERS * 3 / 4)
#define MAX_ROWS (N_SUM / 2)
/* Panels at a time: few rows have too few chains in one panel to hide the latency of a multiply-add. */
#define WIDTH(rows) ((rows)*8 <= N_SUM ? 4 : (rows)*4 <= N_SUM ? 2 : 1)

static int64_t steps_of(cake_dtype dtype, int64_t n)
{
    return (n + STEP_OF(dtype) - 1) / STEP_OF(dtype);
}

static size_t step_bytes(cake_dtype dtype)
{
    return STEP_OF(dtype) * PANEL * cake_dtype_bytes(dtype);
}

static size_t panel_bytes(cake_dtype dtype, int n_in)
{
    return (size_t)steps_of(dtype, n_in) * step_bytes(dtype);
}

static size_t weight_bytes(cake_dtype dtype, int n_out, int n_in)
{
    if (dtype == CAKE_I8)
        return cake_arena_round(i8_weight_bytes(n_out, n_in));
    return cake_arena_round(((size_t)n_out + PANEL - 1) / PANEL * panel_bytes(dtype, n_in));
}

/* The element of packed data that holds W[row][k]. */
static size_t packed_at(const cake_weight *w, int64_t row, int64_t k)
{
    int64_t column = row % PANEL, step = STEP_OF(w->dtype);
    if (w->dtype == CAKE_BF16 && step == 1)
        column = column < LANES ? 2 * column : 2 * (column - LANES) + 1;
    return (size_t)(((row / PANEL * steps_of(w->dtype, w->n_in) + k / step) * PANEL + column) * step +
                    k % step);
}

/* Packs k in [first_k, last_k) of one row; src is that row. The two sizes have a loop each, for speed. */
static void pack_row(const cake_weight *w, const char *src, int64_t row, int first_k, int last_k)
{
    int step = STEP_OF(w->dtype);
    for (int part = 0; part < step; part++) {
        size_t at = packed_at(w, row, first_k + part);
        if (w->dtype == CAKE_F32)
            for (int k = first_k + part; k < last_k; k += step, at += (size_t)(PANEL * step))
                memcpy((char *)w->data + at * 4, src + (size_t)k * 4, 4);
        else
            for (int k = first_k + part; k < last_k; k += step, at += (size_t)(PANEL * step))
                memcpy((char *)w->data + at * 2, src + (size_t)k * 2, 2);
    }
}

static void weight_pack(const cake_weight *w, const void *src, int first, int n_row)
{
    enum {
        NEAR = 64
    }; /* a panel's lines for that many k stay in the first cache until all rows wrote theirs */
    if (w->dtype == CAKE_I8) {
        i8_weight_pack(w, src, first, n_row);
        return;
    }
    size_t element = cake_dtype_bytes(w->dtype), row_bytes = (size_t)w->n_in * element;
    for (int64_t row = first, end; row < (int64_t)first + n_row; row = end) {
        end = (row / PANEL + 1) * PANEL;
        end = end < (int64_t)first + n_row ? end : (int64_t)first + n_row;
        const char *rows = (const char *)src + (size_t)(row - first) * row_bytes;
        int done = end - row == PANEL
                       ? pack_panel(rows, w->n_in, w->dtype, (char *)w->data + packed_at(w, row, 0) * element)
                       : 0;
        for (int k = done; k < w->n_in; k += NEAR)
            for (int64_t r = row; r < end; r++)
                pack_row(w, rows + (size_t)(r - row) * row_bytes, r, k,
                         w->n_in - k < NEAR ? w->n_in : k + NEAR);
    }
}

static void gather(const cake_exec *exec, float *out, const cake_weight *w, const int32_t *row, int n,
                   float factor)
{
    int64_t first, last;
    cake_exec_share(exec, n, 1, &first, &last);
    for (int64_t i = first; i < last; i++) {
        float *to = out + i * w->n_in;
        if (w->dtype == CAKE_I8) {
            i8_gather_row(to, w, row[i], factor);
            continue;
        }
        const float *f32 = (const float *)w->data + packed_at(w, row[i], 0);
        const uint16_t *half = (const uint16_t *)w->data + packed_at(w, row[i], 0);
        int64_t step = STEP_OF(w->dtype);
        for (int64_t k = 0; k < w->n_in; k++) {
            int64_t at = k / step * step * PANEL + k % step;
            float value = w->dtype == CAKE_F32    ? f32[at]
                          : w->dtype == CAKE_BF16 ? cake_bf16_to_f32(half[at])
                                                  : cake_f16_to_f32(half[at]);
            to[k] = factor * value;
        }
    }
}

/* A block: n steps, panels of weights that are `stride` bytes apart, and the sums of the rows. */
typedef struct block {
    const float *x; /* [rows, pitch], from the block's first step on; a float's place holds the x of a step */
    int64_t pitch;
    const char *w;
    size_t stride;
    float *sum; /* [rows, GROUP * PANEL] */
    int n;
} block;

/* sum += x w for so many rows and panels; the two and dtype are constants wherever this is used. */
INLINE void multiply(const block *b, const int rows, const int panels, const cake_dtype dtype)
{
    const int width = 2 * panels;
    const size_t step = PANEL * STEP_OF(dtype) * (dtype == CAKE_F32 ? 4 : 2);
    const float *x = b->x;
    const char *w = b->w;
    vec sum[N_SUM];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < width; v++) sum[r * width + v] =
        vec_load(b->sum + r * GROUP * PANEL + v * LANES);
    for (int k = 0; k < b->n; k++, w += step) {
        UNROLL for (int p = 0; p < panels; p++)
        {
            vec low, high;
            const char *at = w + (size_t)p * b->stride;
            step_load(at, dtype, &low, &high);
            _mm_prefetch(at + AHEAD, _MM_HINT_T0);
            if (step > 64)
                _mm_prefetch(at + AHEAD + 64, _MM_HINT_T0);
            UNROLL for (int r = 0; r < rows; r++)
            {
                vec value = vec_set(x[r * b->pitch + k]);
                sum[r * width + 2 * p] = step_add(value, low, sum[r * width + 2 * p], dtype);
                sum[r * width + 2 * p + 1] = step_add(value, high, sum[r * width + 2 * p + 1], dtype);
            }
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < width; v++)
        vec_store(b->sum + r * GROUP * PANEL + v * LANES, sum[r * width + v]);
}

/* WIDTH(rows) panels if there are so many left, else one; returns how many. */
#define CASE(R)                                                                                              \
    case R:                                                                                                  \
        if (R > MAX_ROWS)                                                                                    \
            break;                                                                                           \
        if (WIDTH(R) > 1 && left >= WIDTH(R)) {                                                              \
            multiply(b, R <= MAX_ROWS ? R : 1, WIDTH(R), dtype);                                             \
            return WIDTH(R);                                                                                 \
        }                                                                                                    \
        multiply(b, R <= MAX_ROWS ? R : 1, 1, dtype);                                                        \
        return 1;

INLINE int multiply_rows(const block *b, int rows, int left, const cake_dtype dtype)
{
    switch (rows) {
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
        CASE(5)
        CASE(6)
        CASE(7)
        CASE(8)
        CASE(9)
        CASE(10)
        CASE(11)
        CASE(12)
    }
    return 0;
}

static int multiply_f32(const block *b, int rows, int left)
{
    return multiply_rows(b, rows, left, CAKE_F32);
}

static int multiply_bf16(const block *b, int rows, int left)
{
    return multiply_rows(b, rows, left, CAKE_BF16);
}

static int multiply_f16(const block *b, int rows, int left)
{
    return multiply_rows(b, rows, left, CAKE_F16);
}

static int (*const multiply_as[CAKE_N_DTYPE])(const block *b, int rows, int left) = {
    [CAKE_F32] = multiply_f32, [CAKE_BF16] = multiply_bf16, [CAKE_F16] = multiply_f16};

/* What linear was asked, for the functions below. */
typedef struct product {
    float *out;
    const float *x;
    const cake_weight *w;
    const float *bias, *residual;
} product;

/* to [rows, PITCH] = x [rows, n_in], n values of k from the given one on, as step_add wants them. */
static void copy_rows(float *to, const float *x, int64_t n_in, int rows, int n, cake_dtype dtype)
{
    for (int r = 0; r < rows; r++)
        step_copy(to + r * PITCH, x + r * n_in, n, dtype);
}

/* sum [rows, GROUP * PANEL] = rows x [n_in] times `panels` panels from the given one on. */
static void multiply_group(float *sum, const product *p, int64_t panel, int panels, int64_t row, int rows)
{
    _Alignas(64) float copy[MAX_ROWS * PITCH];
    int64_t n_in = p->w->n_in, blocks = (rows + MAX_ROWS - 1) / MAX_ROWS, depth = blocks > 1 ? DEPTH : WHOLE;
    cake_dtype dtype = p->w->dtype;
    size_t stride = panel_bytes(dtype, p->w->n_in);
    const char *w = (const char *)p->w->data + (size_t)panel * stride;
    memset(sum, 0, (size_t)rows * GROUP * PANEL * sizeof *sum);
    for (int64_t k = 0; k < n_in; k += depth)
        for (int64_t i = 0; i < blocks; i++) {
            int64_t first = rows * i / blocks, last = rows * (i + 1) / blocks;
            block b = {.x = p->x + (row + first) * n_in + k, .pitch = n_in, .stride = stride};
            int n = n_in - k < depth ? (int)(n_in - k) : (int)depth;
            b.n = (int)steps_of(dtype, n);
            if (last - first > 4 || STEP_OF(dtype) > 1) {
                copy_rows(copy, b.x, n_in, (int)(last - first), n, dtype);
                b.x = copy;
                b.pitch = PITCH;
            }
            for (int done = 0; done < panels;) {
                b.w = w + (size_t)done * stride + (size_t)steps_of(dtype, k) * step_bytes(dtype);
                b.sum = sum + first * GROUP * PANEL + done * PANEL;
                done += multiply_as[dtype](&b, (int)(last - first), panels - done);
            }
        }
}

/* out = sum + bias + residual for columns [first, last). */
static void finish_group(const product *p, const float *sum, int64_t first, int64_t last, int64_t row,
                         int rows)
{
    for (int r = 0; r < rows; r++, sum += GROUP * PANEL) {
        int64_t at = (row + r) * p->w->n_out;
        for (int64_t c = first; c < last; c += LANES) {
            int n = last - c < LANES ? (int)(last - c) : LANES;
            vec v = vec_load(sum + (c - first));
            if (p->bias)
                v = vec_add(v, vec_load_n(p->bias + c, n));
            if (p->residual)
                v = vec_add(v, vec_load_n(p->residual + at + c, n));
            vec_store_n(p->out + at + c, v, n);
        }
    }
}

static void linear(const cake_exec *exec, float *out, const float *x, const cake_weight *w, const float *bias,
                   const float *residual, int n_tok)
{
    if (w->dtype == CAKE_I8) {
        i8_linear(exec, out, x, w, bias, residual, n_tok);
        return;
    }
    _Alignas(64) float sum[ROWS * GROUP * PANEL];
    product p = {out, x, w, bias, residual};
    int64_t first, last, n_panel = ((int64_t)w->n_out + PANEL - 1) / PANEL;
    cake_exec_share(exec, n_panel, 1, &first, &last);
    for (int64_t panel = first; panel < last; panel += GROUP) {
        int panels = last - panel < GROUP ? (int)(last - panel) : GROUP;
        int64_t column = panel * PANEL, end = column + panels * PANEL;
        for (int64_t row = 0; row < n_tok; row += ROWS) {
            int rows = n_tok - row < ROWS ? (int)(n_tok - row) : ROWS;
            multiply_group(sum, &p, panel, panels, row, rows);
            finish_group(&p, sum, column, end < w->n_out ? end : w->n_out, row, rows);
        }
    }
}

#endif
