/* SPDX-License-Identifier: Apache-2.0
 *
 * Products with matrices in int8, written with vec_*.h and dot_*.h; included once by each instruction set's
 * file.
 *
 * In: packed rows x [n_row, n_in], a matrix as int8_pack.h has packed it. Out: [n_row, n_out]. Where weights
 * are stored plus 128, each sum starts at minus 128 times the sum of the group's x.
 *
 * Invariant: the sums of a group are exact, so bits do not depend on tiles or instructions; float32 additions
 * have the order of kernels/int8.h.
 */
#ifndef CAKE_KERNELS_CPU_INT8_H
#define CAKE_KERNELS_CPU_INT8_H

#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/epilogue.h"
#include "kernels/cpu/grouped_gemm.h"
#include "kernels/cpu/int8_pack.h"
#include "kernels/cpu/row_ops.h"
#include "kernels/int8.h"
#include "kernels/kernels.h"

#define I8_DEPTH      1024             /* values of k of a block, whole groups */
#define I8_COPY       (448 / DOT_SIZE) /* rows that are multiplied by all panels together: half of L2 */
#define I8_SOME       (192 << 10)      /* bytes of panels used by all rows before the next ones */
#define I8_AHEAD      4096             /* prefetch distance of weights, in bytes */
#define I8_ROWS_AHEAD 2                /* prefetch distance of x, in rows */

/* The scale of a group of a quantised row, and what its sums begin with. */
typedef struct i8_part {
    float scale;
    int32_t begin;
} i8_part;

/* A block's values of a row, quantised. Rows a multiple of 4 KB apart would displace each other in cache. */
typedef struct i8_row {
    _Alignas(64) i8_part part[I8_DEPTH / CAKE_I8_GROUP];
    char value[I8_DEPTH * DOT_SIZE]; /* as dot_*.h wants them */
    char space[64];
} i8_row;

INLINE vec i8_load(const float *x, int n)
{
    return n >= LANES ? vec_load(x) : vec_load_n(x, n);
}

/* As quantise of kernels/ref/int8.h; n is a constant where groups are whole. to has room for whole
 * vectors. */
INLINE i8_part i8_quantize_group(char *to, const float *x, int n)
{
    wholes sizes = whole_set(0), sum = whole_set(0);
    for (int i = 0; i < n; i += LANES)
        sizes = whole_max(sizes, whole_size(i8_load(x + i, n - i)));
    int32_t bits = whole_most(sizes);
    float most;
    memcpy(&most, &bits, sizeof most);
    bool finite = most <= FLT_MAX;
    if (!finite || most < CAKE_I8_LEAST) {
        for (int i = 0; i < n; i += LANES)
            dot_store(to + i * DOT_SIZE, whole_set(0));
        return (i8_part){finite ? 0 : NAN, 0};
    }
    vec factor = vec_set(127 / most);
    for (int i = 0; i < n; i += LANES) {
        wholes v = whole_round(vec_mul(i8_load(x + i, n - i), factor));
        sum = whole_add(sum, v);
        dot_store(to + i * DOT_SIZE, v);
    }
    return (i8_part){most / 127, -I8_ZERO * whole_sum(sum)};
}

/* to = n values of k of a row, at most I8_DEPTH. */
static void i8_quantize(i8_row *to, const entering *in, int64_t row, int64_t at, int n)
{
    float room[I8_DEPTH];
    const float *x = enter(in, row, at, n, room);
    int64_t later = row + I8_ROWS_AHEAD < in->rows ? row + I8_ROWS_AHEAD : row;
    const char *soon = (const char *)(in->x + entering_at(in, later, at));
    for (int k = 0; k < n; k += CAKE_I8_GROUP) {
        i8_part *part = &to->part[k / CAKE_I8_GROUP];
        for (int i = 0; i < CAKE_I8_GROUP;
             i += 16) /* rows are far apart: the hardware does not prefetch the next one */
            prefetch_near(soon + (k + i) * 4);
        if (n - k >= CAKE_I8_GROUP)
            *part = i8_quantize_group(to->value + k * DOT_SIZE, x + k, CAKE_I8_GROUP);
        else
            *part = i8_quantize_group(to->value + k * DOT_SIZE, x + k, n - k);
    }
}

/* The product of rows x with n values of k of a panel. */
typedef struct i8_meeting {
    const i8_row *x;
    const char *w;
    int n;
    const char *soon; /* weights to prefetch into L2 */
    int64_t stride;   /* bytes by which soon moves on with each step */
    bool begins;      /* nothing was summed up before */
    float *sum;       /* [rows, I8_PANEL] sums so far, which are read and written */
    float *out;       /* not NULL: the last sums are written here instead */
    int64_t pitch;    /* values from one row of out to the next */
} i8_meeting;

INLINE void i8_fetch_ahead(const char *w)
{
    prefetch_near(w + I8_AHEAD);
    if (LANES * I8_STEP == 64)
        prefetch_near(w + I8_AHEAD + 64);
}

/* low, high [rows] += one part of a step. */
INLINE void i8_add_part(wholes *low, wholes *high, const char *value, const char *w, const int part,
                        const int rows)
{
    wholes w_low = dot_load(w, part), w_high = dot_load(w + LANES * I8_STEP, part);
    UNROLL for (int r = 0; r < rows; r++)
    {
        wholes v = dot_set(value + (size_t)r * sizeof(i8_row), part);
        low[r] = dot_add(low[r], w_low, v);
        high[r] = dot_add(high[r], w_high, v);
    }
}

/* The last part of a group's last step: a row's sums are scaled while the next row's are multiplied. w: NULL
 * if nothing is left to multiply. */
INLINE void i8_end_group(const i8_meeting *m, int g, wholes *low, wholes *high, const char *value,
                         const char *w, const char *scales, const int rows)
{
    static const float zeros[I8_PANEL] = {0};
    bool first = m->begins && g == 0, last = m->out && (g + 1) * CAKE_I8_GROUP >= m->n;
    const float *from = first ? zeros : m->sum;
    float *to = last ? m->out : m->sum;
    int64_t from_pitch = first ? 0 : I8_PANEL, to_pitch = last ? m->pitch : I8_PANEL;
    vec scale_low, scale_high;
    vec_load_pair(scales, CAKE_BF16, &scale_low, &scale_high);
    wholes w_low = w ? dot_load(w, DOT_PARTS - 1) : whole_set(0),
           w_high = w ? dot_load(w + LANES * I8_STEP, DOT_PARTS - 1) : w_low;
    UNROLL for (int r = 0; r < rows; r++, from += from_pitch, to += to_pitch)
    {
        if (w) {
            wholes v = dot_set(value + (size_t)r * sizeof(i8_row), DOT_PARTS - 1);
            low[r] = dot_add(low[r], w_low, v);
            high[r] = dot_add(high[r], w_high, v);
        }
        vec sum_low = whole_float(low[r]), sum_high = whole_float(high[r]);
        vec scale = vec_set(m->x[r].part[g].scale);
        vec_store(to, vec_fma(sum_low, vec_mul(scale, scale_low), vec_load(from)));
        vec_store(to + LANES, vec_fma(sum_high, vec_mul(scale, scale_high), vec_load(from + LANES)));
        __asm__ volatile("" ::: "memory"); /* else gcc 12 separates these and spills sums */
    }
}

#if DOT_SQUARES
/* low, high [rows, made even] += two steps, or the last one alone. */
INLINE void i8_add_squares(wholes *low, wholes *high, const char *value, const char *w, const bool alone,
                           const int rows)
{
    UNROLL for (int v = 0; v < 2; v++)
    {
        const char *at = w + v * LANES * I8_STEP;
        const dot_columns columns =
            dot_columns_of(whole_load(at), alone ? whole_set(0) : whole_load(at + I8_PANEL * I8_STEP));
        UNROLL for (int r = 0; r < rows; r += 2)
        {
            const char *x = value + (size_t)r * sizeof(i8_row), *y = r + 1 < rows ? x + sizeof(i8_row) : x;
            dot_add_squares((v ? high : low) + r, &columns, x, y);
        }
    }
}

/* As i8_multiply, for two rows or more. */
INLINE void i8_multiply_squares(const i8_meeting *m, const int rows)
{
    const char *w = m->w, *soon = m->soon;
    for (int g = 0; g * CAKE_I8_GROUP < m->n; g++) {
        int left = m->n - g * CAKE_I8_GROUP;
        int64_t steps = i8_steps(left < CAKE_I8_GROUP ? left : CAKE_I8_GROUP);
        const char *value = m->x->value + g * CAKE_I8_GROUP, *scales = w;
        wholes low[DOT_ROWS + 1], high[DOT_ROWS + 1];
        UNROLL for (int r = 0; r < (rows + 1) / 2 * 2; r++) low[r] = high[r] = whole_set(0);
        w += I8_PANEL * 2;
        for (; steps >= 2; steps -= 2, value += 2 * I8_STEP, w += 2 * I8_PANEL * I8_STEP) {
            i8_fetch_ahead(w);
            i8_fetch_ahead(w + I8_PANEL * I8_STEP);
            prefetch_far(soon);
            prefetch_far(soon + m->stride);
            soon += 2 * m->stride;
            i8_add_squares(low, high, value, w, false, rows);
        }
        if (steps) {
            i8_add_squares(low, high, value, w, true, rows);
            w += I8_PANEL * I8_STEP;
        }
        UNROLL for (int r = 0; r < rows; r += 2)
        {
            dot_end_squares(low + r);
            dot_end_squares(high + r);
        }
        i8_end_group(m, g, low, high, NULL, NULL, scales, rows);
    }
}
#endif

/* The product for so many rows, which is a constant wherever this is used. */
INLINE void i8_multiply(const i8_meeting *m, const int rows)
{
#if DOT_SQUARES
    if (rows > 1) {
        i8_multiply_squares(m, rows);
        return;
    }
#endif
    const char *w = m->w;
    const char *soon = m->soon;
    for (int g = 0; g * CAKE_I8_GROUP < m->n; g++) {
        int left = m->n - g * CAKE_I8_GROUP;
        int64_t steps = i8_steps(left < CAKE_I8_GROUP ? left : CAKE_I8_GROUP);
        const char *value = m->x->value + g * CAKE_I8_GROUP * DOT_SIZE, *scales = w;
        const char *last = value + (steps - 1) * I8_STEP * DOT_SIZE;
        wholes low[DOT_ROWS], high[DOT_ROWS];
        UNROLL for (int r = 0; r < rows; r++) low[r] = high[r] = whole_set(m->x[r].part[g].begin);
        w += I8_PANEL * 2;
        for (; value < last; value += I8_STEP * DOT_SIZE, w += I8_PANEL * I8_STEP, soon += m->stride) {
            i8_fetch_ahead(w);
            prefetch_far(soon);
            UNROLL for (int part = 0; part < DOT_PARTS; part++) i8_add_part(low, high, value, w, part, rows);
        }
        i8_fetch_ahead(w);
        UNROLL for (int part = 0; part < DOT_PARTS - 1; part++) i8_add_part(low, high, value, w, part, rows);
        i8_end_group(m, g, low, high, value, w, scales, rows);
        w += I8_PANEL * I8_STEP;
    }
}

#define I8_CASE(R)                                                                                           \
    case R:                                                                                                  \
        i8_multiply(m, R <= DOT_ROWS ? R : 1);                                                               \
        break;

static void i8_multiply_rows(const i8_meeting *m, int rows)
{
    switch (rows) {
        I8_CASE(1)
        I8_CASE(2)
        I8_CASE(3)
        I8_CASE(4)
        I8_CASE(5)
        I8_CASE(6)
        I8_CASE(7)
        I8_CASE(8)
        I8_CASE(9)
        I8_CASE(10)
        I8_CASE(11)
        I8_CASE(12)
    }
}

/* Packed x: for each I8_DEPTH values of k a row's place for each of n_row rows. */
static size_t i8_input_bytes(int n_in)
{
    return ((size_t)n_in + I8_DEPTH - 1) / I8_DEPTH * sizeof(i8_row);
}

/* Rows [first, last), n values of each from k on, which a block begins with; n_row rows are packed in all. */
static void i8_pack_part(i8_row *to, const entering *in, int64_t first, int64_t last, int64_t k, int n,
                         int n_row)
{
    for (to += k / I8_DEPTH * n_row; n > 0; n -= I8_DEPTH, k += I8_DEPTH, to += n_row)
        for (int64_t row = first; row < last; row++)
            i8_quantize(to + row, in, row, k, n < I8_DEPTH ? n : I8_DEPTH);
}

/* A problem, and the packed rows of x of all problems. */
typedef struct i8_product {
    const problem *with;
    const i8_row *x; /* [n_in in blocks, n_row] */
    int64_t n_row;
} i8_product;

/* Rows whose sums fit the registers, and the index of this tile among those that share panels. */
typedef struct i8_tile {
    int64_t row;
    int rows;
    int64_t number, of;
} i8_tile;

static i8_tile i8_tile_at(int64_t row, int64_t rows, int64_t number, int64_t of)
{
    int64_t from = rows * number / of, to = rows * (number + 1) / of;
    return (i8_tile){row + from, (int)(to - from), number, of};
}

/* Values k to k + n of a panel for a tile; next: the following panel, of which each tile prefetches a
 * part. */
static i8_meeting i8_meeting_of(const i8_product *p, const i8_tile *t, int64_t panel, int64_t next, int k)
{
    const cake_weight *w = &p->with->w;
    int n = w->n_in - k < I8_DEPTH ? w->n_in - k : I8_DEPTH;
    return (i8_meeting){.x = p->x + p->with->first + t->row + k / I8_DEPTH * p->n_row,
                        .w = i8_group(w, panel * I8_PANEL, k),
                        .n = n,
                        .soon = i8_group(w, next * I8_PANEL, k) + (int64_t)i8_bytes(n) * t->number / t->of,
                        .stride = I8_PANEL * I8_STEP / t->of + 1,
                        .begins = k == 0};
}

/* The product of a tile with one panel. Whole panels without bias or residual are stored directly. */
static void i8_multiply_tile(const i8_product *p, const i8_tile *t, int64_t panel, int64_t next)
{
    _Alignas(64) float sum[DOT_ROWS * I8_PANEL];
    const ending *e = &p->with->end;
    int64_t column = panel * I8_PANEL, n_out = e->n_out;
    float *out = e->out + t->row * n_out + column;
    bool waits = e->best || e->bias || e->residual || column + I8_PANEL > n_out;
    fetch_places(e, t->row, t->rows, column, I8_PANEL);
    for (int k = 0; k < p->with->w.n_in; k += I8_DEPTH) {
        i8_meeting m = i8_meeting_of(p, t, panel, next, k);
        m.sum = sum;
        m.out = waits || k + m.n < p->with->w.n_in ? NULL : out;
        m.pitch = n_out;
        i8_multiply_rows(&m, t->rows);
    }
    if (waits)
        finish(e, sum, I8_PANEL, t->row, t->rows, column, I8_PANEL);
}

/* Rows [row, row + rows) of a problem with some of its panels. A tile stays in L1 while the panels pass; the
 * panels stay in L2 until all tiles have used them, while the next ones are prefetched. */
static void i8_multiply_some(const i8_product *p, const take *now, const take *next, int64_t row,
                             int64_t rows)
{
    int64_t tiles = (rows + DOT_ROWS - 1) / DOT_ROWS;
    for (int64_t i = 0; i < tiles; i++) {
        i8_tile t = i8_tile_at(row, rows, i, tiles);
        for (int64_t j = now->first; j < now->last; j++) {
            int64_t then = next->first + (j - now->first),
                    near = j + (rows > 1); /* one row: one stream of memory */
            i8_multiply_tile(p, &t, j, tiles == 1 ? near : then < next->last ? then : j);
        }
    }
}

static int64_t i8_turns(int64_t rows, int64_t most)
{
    return (rows + most - 1) / most;
}

/* All problems, for as many rows of each at a time as stay in cache. */
static void i8_multiply_all(const cake_exec *exec, const problems *of, const void *x)
{
    const cake_weight *w = of->groups ? &of->product->experts->w : &of->whole.w;
    i8_product p = {.x = x, .n_row = problems_rows(of)};
    int64_t depth = ((int64_t)w->n_in + I8_DEPTH - 1) / I8_DEPTH;
    int64_t most = I8_COPY / depth > DOT_ROWS ? I8_COPY / depth : DOT_ROWS;
    int64_t panels = ((int64_t)w->n_out + I8_PANEL - 1) / I8_PANEL,
            some = (int64_t)(I8_SOME / i8_bytes(w->n_in)) + 1, all = i8_turns(problems_most_rows(of), most);
    for (int64_t i = 0; i < all; i++) {
        panel_queue queue = panel_queue_of(exec, of, panels, some);
        take now, next;
        problem room;
        bool more = next_take(&queue, &now);
        for (; more; now = next) {
            more = next_take(&queue, &next);
            p.with = problem_at(of, now.base / panels, &room);
            int64_t turns = i8_turns(p.with->n_row, most);
            if (i >= turns)
                continue;
            int64_t row = (int64_t)p.with->n_row * i / turns,
                    rows = (int64_t)p.with->n_row * (i + 1) / turns - row;
            i8_multiply_some(&p, &now, more && next.base == now.base ? &next : &now, row, rows);
        }
    }
}

#endif
