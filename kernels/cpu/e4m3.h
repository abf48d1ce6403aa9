/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices of 8-bit floats, for linear.h; included once by each instruction set's file.
 *
 * In: grouped rows of E4M3 as format.h has them. Out: panels of PANEL columns. A panel is its columns'
 * factors, if the format has them or rows share scales, the columns' scales of group 0 (one if they share
 * it), then of group 1, and so on, and then, from a line of a cache on, the columns' codes, in blocks of
 * E4M3_DEPTH values of k. e4m3_floats.h and its like say where in its block a code stands (e4m3_at), store
 * those of 16 columns and two values of k (e4m3_store_pair), and make a block's E4M3_STEPS steps as linear.h
 * multiplies them, too small by E4M3_FACTOR (e4m3_load). Few rows multiply codes that are converted in
 * registers, more rows a panel of steps.
 *
 * Invariant: a group's sum is one chain of multiply-adds of x and values of codes, as of BF16 weights. An
 * output is one chain of fused multiply-adds of these sums and their scales, groups ascending from 0
 * (kernels/ref/ref.c). A code that is NaN makes its whole group NaN; if rows share scales, its column, whose
 * factor else is 1.
 */
#ifndef CAKE_KERNELS_CPU_E4M3_H
#define CAKE_KERNELS_CPU_E4M3_H

#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/codes_gemm.h"
#include "kernels/cpu/dequantized.h"
#include "kernels/cpu/pack.h"
#include "kernels/format.h"
#include "kernels/tensor.h"

#define E4M3_FEW  4  /* rows whose products convert codes in registers */
#define E4M3_ROWS 16 /* that are packed together: of a value of k as many bytes as a store has */
#define E4M3_STEP (E4M3_DEPTH / E4M3_STEPS) /* values of k of a step */
/* The dtype of a panel of steps, and the groups that it has at most. */
#define E4M3_AS     (E4M3_STEP == 2 ? CAKE_BF16 : CAKE_F32)
#define E4M3_GROUPS (DEQUANTIZED_DEPTH * E4M3_STEP / CAKE_E4M3_GROUP + 1)

static bool is_e4m3(const cake_weight *w)
{
    return w->format && w->dtype == CAKE_BF16;
}

static int e4m3_group(const cake_weight *w)
{
    return w->format->group ? w->format->group : w->n_in;
}

/* Steps of a group. */
static int e4m3_group_steps(const cake_weight *w)
{
    return (e4m3_group(w) + E4M3_STEP - 1) / E4M3_STEP;
}

static size_t e4m3_scales(const cake_format *f)
{
    return f->factor || f->shared ? PANEL * sizeof(float) : 0;
}

/* Bytes of the scales of a group. */
static size_t e4m3_scale_bytes(const cake_format *f)
{
    return cake_scale_bytes(f->scale) * (f->shared ? 1 : PANEL);
}

static size_t e4m3_codes(const cake_format *f, int n_in)
{
    return (e4m3_scales(f) + (size_t)cake_format_groups(f, n_in) * e4m3_scale_bytes(f) + 63) / 64 * 64;
}

static size_t e4m3_panel_bytes(const cake_weight *w)
{
    const size_t blocks = ((size_t)w->n_in + E4M3_DEPTH - 1) / E4M3_DEPTH;
    return e4m3_codes(w->format, w->n_in) + blocks * E4M3_DEPTH * PANEL;
}

static size_t e4m3_weight_bytes(const cake_weight *w)
{
    return ((size_t)w->n_out + PANEL - 1) / PANEL * e4m3_panel_bytes(w);
}

static char *e4m3_panel(const cake_weight *w, int64_t panel)
{
    return (char *)w->data + (size_t)panel * e4m3_panel_bytes(w);
}

/* Where the code of a column of a panel stands, after e4m3_codes. */
static size_t e4m3_code_at(int k, int column)
{
    return (size_t)(k - k % E4M3_DEPTH) * PANEL + (size_t)e4m3_at(k % E4M3_DEPTH, column);
}

/* The bytes of a scale that is NaN; E8M0 and E4M3 have one, too. */
static void e4m3_set_nan(char *scale, cake_scale type)
{
    memset(scale, type == CAKE_SCALE_E4M3 ? 0x7F : 0xFF, cake_scale_bytes(type));
}

/* Values [k, n_in) of a row. */
static void e4m3_pack_row(const cake_weight *w, const char *row, int64_t at, int k)
{
    const cake_format *f = w->format;
    const float none = NAN;
    const int column = (int)(at % PANEL);
    const char *codes = row + cake_format_codes(f, w->n_in);
    char *panel = e4m3_panel(w, at / PANEL), *to = panel + e4m3_codes(f, w->n_in);
    for (; k < w->n_in; k++) {
        to[e4m3_code_at(k, column)] = codes[k];
        if ((codes[k] & 0x7F) != 0x7F)
            continue;
        if (f->shared)
            memcpy(panel + (size_t)column * sizeof none, &none, sizeof none);
        else
            e4m3_set_nan(panel + e4m3_scales(f) + (size_t)(k / e4m3_group(w)) * e4m3_scale_bytes(f) +
                             (size_t)column * cake_scale_bytes(f->scale),
                         f->scale);
    }
}

/* What stands before the codes, of one column. */
static void e4m3_pack_head(const cake_weight *w, const char *row, int64_t at)
{
    const cake_format *f = w->format;
    const size_t size = cake_scale_bytes(f->scale);
    const int64_t column = at % PANEL;
    const float one = 1;
    char *to = e4m3_panel(w, at / PANEL), *scales = to + e4m3_scales(f);
    if (f->factor || f->shared)
        memcpy(to + (size_t)column * sizeof one, f->factor ? row : (const char *)&one, sizeof one);
    if (f->shared && column)
        return;
    for (int g = 0; g < cake_format_groups(f, w->n_in); g++)
        memcpy(scales + (size_t)g * e4m3_scale_bytes(f) + (size_t)column * size,
               row + cake_format_scales(f) + (size_t)g * size, size);
}

/* E4M3_ROWS rows of SQUARE words, `pitch` bytes apart, to so many columns of blocks from `column` on. False:
 * one is NaN. */
INLINE bool e4m3_pack_square(char *to, int column, const char *src, size_t pitch)
{
    static const int8_t bytes[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
    const words8 size = words8_set_bytes(0x7F);
    words8 word[2][SQUARE], bad = words8_set(0);
    transpose_8(src, pitch, word[0]);
    transpose_8(src + SQUARE * pitch, pitch, word[1]);
    UNROLL for (int i = 0; i < SQUARE; i++)
    {
        /* of four values of k: those of rows 0 to 3 and 4 to 7, and of the next eight rows */
        const words8 a = words8_order(word[0][i], bytes), b = words8_order(word[1][i], bytes);
        const words8 transposed[2] = {words8_low(a, b), words8_high(a, b)};
        bad = words8_or(bad, words8_equal_bytes(words8_and(a, size), size));
        bad = words8_or(bad, words8_equal_bytes(words8_and(b, size), size));
        UNROLL for (int h = 0; h < 2; h++)
        {
            /* each half has words of rows 0, 8 and 0, 8 of two values of k; the other those of rows 4, 12 */
            const words4 x = words8_half(transposed[h], 0), y = words8_half(transposed[h], 1);
            e4m3_store_pair(to + (size_t)(4 * i + 2 * h) * PANEL, column, words4_low(x, y),
                            words4_high(x, y));
        }
    }
    return !words8_any(bad);
}

/* Packs all rows of a panel as far as there are whole squares without a NaN; returns how many values of k. */
static int e4m3_pack_panel(const cake_weight *w, const char *rows, size_t pitch, int64_t panel)
{
    char *to = e4m3_panel(w, panel) + e4m3_codes(w->format, w->n_in);
    const char *codes = rows + cake_format_codes(w->format, w->n_in);
    int k = 0;
    bool good = true;
    for (; good && k + 4 * SQUARE <= w->n_in; k += 4 * SQUARE)
        for (int row = 0; row < PANEL; row += E4M3_ROWS)
            good &= e4m3_pack_square(to + (size_t)k * PANEL, row, codes + (size_t)row * pitch + k, pitch);
    return good ? k : k - 4 * SQUARE;
}

static void e4m3_weight_pack(const cake_weight *w, const void *src, int first, int n_row)
{
    const size_t pitch = cake_weight_row_bytes(w);
    for (int64_t row = first, end; row < (int64_t)first + n_row; row = end) {
        const char *rows = (const char *)src + (size_t)(row - first) * pitch;
        end = (row / PANEL + 1) * PANEL;
        end = end < (int64_t)first + n_row ? end : (int64_t)first + n_row;
        for (int64_t r = row; r < end; r++)
            e4m3_pack_head(w, rows + (size_t)(r - row) * pitch, r);
        const int done = end - row == PANEL ? e4m3_pack_panel(w, rows, pitch, row / PANEL) : 0;
        for (int64_t r = row; r < end; r++)
            e4m3_pack_row(w, rows + (size_t)(r - row) * pitch, r, done);
    }
}

/* Scales of a half of a panel's columns in a group. */
INLINE vec e4m3_load_scales(const cake_format *f, const char *panel, int group, int half)
{
    const float *scales = (const float *)(panel + e4m3_scales(f)),
                *of_columns = (const float *)panel + half * LANES;
    if (f->shared)
        return vec_mul(vec_set(scales[group]), vec_load(of_columns));
    const vec scale = codes_load_scale((const char *)scales, 2 * group + half, f->scale);
    return !f->factor   ? scale
           : f->divides ? vec_div(scale, vec_load(of_columns))
                        : vec_mul(scale, vec_load(of_columns));
}

/* to [E4M3_GROUPS, PANEL] = scales of the groups of steps [step, step + n) of a panel; n is at most
 * DEQUANTIZED_DEPTH. */
static void e4m3_scale_panel(float *to, const cake_weight *w, int64_t panel, int step, int n)
{
    const int steps = e4m3_group_steps(w), first = step / steps, last = (step + n - 1) / steps;
    for (int group = first; group <= last; group++)
        for (int half = 0; half < 2; half++, to += LANES)
            vec_store(to, e4m3_load_scales(w->format, e4m3_panel(w, panel), group, half));
}

/* to = steps [step, step + n) of a panel, before the scale; whole blocks. step is at the begin of one. */
static void e4m3_convert_panel(float *to, const cake_weight *w, int64_t panel, int step, int n)
{
    const char *codes =
        e4m3_panel(w, panel) + e4m3_codes(w->format, w->n_in) + (size_t)step * E4M3_STEP * PANEL;
    for (int i = 0; i < n; i += E4M3_STEPS, codes += E4M3_DEPTH * PANEL) {
        vec value[2 * E4M3_STEPS];
        e4m3_load(value, codes);
        UNROLL for (int j = 0; j < 2 * E4M3_STEPS; j++, to += LANES)
            vec_store(to, E4M3_FACTOR == 1 ? value[j] : vec_mul(value[j], vec_set(E4M3_FACTOR)));
    }
}

/* Few rows x [n, rows] that meet steps [step, step + n) of panels. total [rows, pitch]: finished groups' sums
 * times their scales; sum [rows, pitch]: of a group that goes on. */
typedef struct e4m3_meeting {
    const cake_weight *w;
    const float *x;
    float *total, *sum;
    int64_t pitch;
    int step, n;
    bool large; /* x is not multiplied by E4M3_FACTOR */
} e4m3_meeting;

/* to [n, rows] = x times E4M3_FACTOR, so that a block's values need no factor. False: some might overflow,
 * and to [rows, n] = x: each row is multiplied by itself. */
static bool e4m3_scale_input(float *to, const float *x, int n, int rows)
{
    vec most = vec_set(0);
    int i = 0;
    for (; i + LANES <= n * rows; i += LANES) {
        const vec v = vec_load(x + i);
        most = vec_max(vec_max(v, vec_sub(vec_set(0), v)), most); /* NaN does not count */
        vec_store(to + i, vec_mul(v, vec_set(E4M3_FACTOR)));
    }
    bool large = !(vec_most(most) <= FLT_MAX / E4M3_FACTOR);
    for (; i < n * rows; i++) {
        large |= x[i] > FLT_MAX / E4M3_FACTOR || x[i] < -FLT_MAX / E4M3_FACTOR;
        to[i] = x[i] * E4M3_FACTOR;
    }
    for (int r = 0; r < rows && large; r++)
        for (int k = 0; k < n; k++)
            to[r * n + k] = x[k * rows + r];
    return !large;
}

/* Steps together whose codes are a line of a cache. */
#define E4M3_LINE (64 / (PANEL * E4M3_STEP))

/* sum [rows, panels, 2] += x [n, rows] times n steps of a block of each of some panels, `stride` bytes
 * apart. */
INLINE void e4m3_add(vec *sum, const float *x, const char *block, size_t stride, const int panels,
                     const int rows, int n, const bool large)
{
    UNROLL for (int p = 0; p < panels; p++)
    {
        vec value[2 * E4M3_STEPS];
        e4m3_load(value, block + (size_t)p * stride);
        UNROLL for (int i = 0; i < E4M3_STEPS; i++) if (i < n)
        {
            if (large) {
                value[2 * i] = vec_mul(value[2 * i], vec_set(E4M3_FACTOR));
                value[2 * i + 1] = vec_mul(value[2 * i + 1], vec_set(E4M3_FACTOR));
            }
            UNROLL for (int r = 0; r < rows; r++)
            {
                const vec factor = vec_set(x[i * rows + r]);
                vec *to = &sum[2 * (r * panels + p)];
                to[0] = step_add(factor, value[2 * i], to[0], CAKE_BF16);
                to[1] = step_add(factor, value[2 * i + 1], to[1], CAKE_BF16);
            }
        }
    }
}

/* The end of a group's part: total += sum times scale if the group ends, else sum is stored. */
INLINE void e4m3_end(const e4m3_meeting *m, const vec *sum, int64_t panel, int group, bool ends,
                     const int panels, const int rows)
{
    UNROLL for (int h = 0; h < 2 * panels; h++)
    {
        const vec scale = e4m3_load_scales(m->w->format, e4m3_panel(m->w, panel + h / 2), group, h % 2);
        UNROLL for (int r = 0; r < rows; r++)
        {
            const int64_t at = r * m->pitch + h * LANES;
            const vec total = group ? vec_load(m->total + at) : vec_set(0);
            if (ends)
                vec_store(m->total + at, vec_fma(sum[r * 2 * panels + h], scale, total));
            else
                vec_store(m->sum + at, sum[r * 2 * panels + h]);
        }
    }
}

/* Two panels together, where one has too few sums to hide an addition's latency. */
INLINE void e4m3_multiply(const e4m3_meeting *m, int64_t panel, const int panels, const int rows,
                          const bool large)
{
    const size_t stride = e4m3_panel_bytes(m->w);
    const char *codes = e4m3_panel(m->w, panel) + e4m3_codes(m->w->format, m->w->n_in);
    const int group = e4m3_group_steps(m->w), halves = 2 * panels, end = m->step + m->n;
    const int all = (m->w->n_in + E4M3_STEP - 1) / E4M3_STEP;
    const float *x = m->x;
    codes += (size_t)m->step * E4M3_STEP * PANEL;
    for (int k = m->step, next; k < end; k = next) {
        vec sum[2 * E4M3_FEW];
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < halves; h++) sum[r * halves + h] =
            k % group == 0 ? vec_set(0) : vec_load(m->sum + r * m->pitch + h * LANES);
        const int at = k / group;
        next = (at + 1) * group < end ? (at + 1) * group : end;
        for (; k + E4M3_LINE <= next; k += E4M3_LINE) {
            UNROLL for (int p = 0; p < panels; p++) prefetch_near(codes + (size_t)p * stride + CODES_AHEAD);
            UNROLL for (int i = 0; i < E4M3_LINE; i += E4M3_STEPS)
            {
                e4m3_add(sum, x, codes, stride, panels, rows, E4M3_STEPS, large);
                x += E4M3_STEPS * rows;
                codes += E4M3_DEPTH * PANEL;
            }
        }
        for (; k < next; k += E4M3_STEPS, x += E4M3_STEPS * rows, codes += E4M3_DEPTH * PANEL)
            e4m3_add(sum, x, codes, stride, panels, rows, next - k, large);
        e4m3_end(m, sum, panel, at, next % group == 0 || next == all, panels, rows);
    }
}

/* Rows <= E4M3_FEW; returns the number of panels, one or two, of which `left` are left. */
static int e4m3_multiply_rows(const e4m3_meeting *m, int64_t panel, int left, int rows)
{
    if (E4M3_FACTOR != 1 && m->large) {
        e4m3_meeting one = *m;
        for (int r = 0; r < rows; r++, one.x += m->n, one.total += m->pitch, one.sum += m->pitch)
            e4m3_multiply(&one, panel, 1, 1, true);
        return 1;
    }
    const int panels = left > 1 && rows < 3 ? 2 : 1;
    if (rows == 1 && panels == 2)
        e4m3_multiply(m, panel, 2, 1, false);
    else if (rows == 2 && panels == 2)
        e4m3_multiply(m, panel, 2, 2, false);
    else
        UNROLL for (int r = 1; r <= E4M3_FEW; r++) if (r == rows) e4m3_multiply(m, panel, 1, r, false);
    return panels;
}

/* to [w->n_in] = factor * W[row] */
static void e4m3_gather_row(float *to, const cake_weight *w, int64_t row, float factor)
{
    const cake_format *f = w->format;
    const int group = e4m3_group(w), column = (int)(row % PANEL);
    const char *panel = e4m3_panel(w, row / PANEL), *codes = panel + e4m3_codes(f, w->n_in);
    float by = 1;
    if (f->factor || f->shared)
        memcpy(&by, panel + (size_t)column * sizeof by, sizeof by);
    for (int k = 0, next; k < w->n_in; k = next) {
        const char *at = panel + e4m3_scales(f) + (size_t)(k / group) * e4m3_scale_bytes(f) +
                         (f->shared ? 0 : (size_t)column * cake_scale_bytes(f->scale));
        float scale = cake_scale_to_f32(at, f->scale);
        scale = f->divides ? scale / by : scale * by;
        next = k + group < w->n_in ? k + group : w->n_in;
        for (int i = k; i < next; i++)
            to[i] = cake_e4m3_to_f32((uint8_t)codes[e4m3_code_at(i, column)]) * scale * factor;
    }
}

#endif
