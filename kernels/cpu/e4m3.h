/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices of 8-bit floats, for linear.h; included once by each instruction set's file.
 *
 * In: grouped rows of E4M3 as format.h has them. Out: panels of PANEL columns. A panel is its columns'
 * factors, if the format has them, the columns' scales of group 0, then of group 1, and so on, and then the
 * columns' codes, in blocks of E4M3_DEPTH values of k (vec_avx512.h describes them). Few rows multiply codes
 * that are converted in registers, more rows a panel of floats.
 *
 * Invariant: a weight is its value times its scale, rounded to float32, as format.h dequantises it, so
 * products have the bits of the same matrix in F32. A code that is NaN makes its whole group NaN.
 */
#ifndef CAKE_KERNELS_CPU_E4M3_H
#define CAKE_KERNELS_CPU_E4M3_H

#include <float.h>
#include <string.h>

#include "kernels/cpu/codes_gemm.h"
#include "kernels/cpu/pack.h"
#include "kernels/format.h"
#include "kernels/tensor.h"

#define E4M3_FEW  4  /* rows whose products convert codes in registers */
#define E4M3_ROWS 16 /* that are packed together: of a value of k as many bytes as a store has */

static bool is_e4m3(const cake_weight *w)
{
    return w->format && !w->format->block && w->format->code == CAKE_CODE_E4M3 && !w->format->indexed;
}

static int e4m3_group(const cake_weight *w)
{
    return w->format->group ? w->format->group : w->n_in;
}

static size_t e4m3_scales(const cake_format *f)
{
    return f->factor ? PANEL * sizeof(float) : 0;
}

static size_t e4m3_codes(const cake_format *f, int n_in)
{
    return e4m3_scales(f) + (size_t)cake_format_groups(f, n_in) * PANEL * cake_scale_bytes(f->scale);
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
    const size_t size = cake_scale_bytes(f->scale);
    const int column = (int)(at % PANEL);
    const char *codes = row + cake_format_codes(f, w->n_in);
    char *to = e4m3_panel(w, at / PANEL), *scales = to + e4m3_scales(f) + (size_t)column * size;
    to += e4m3_codes(f, w->n_in);
    for (; k < w->n_in; k++) {
        to[e4m3_code_at(k, column)] = codes[k];
        if ((codes[k] & 0x7F) == 0x7F)
            e4m3_set_nan(scales + (size_t)(k / e4m3_group(w)) * PANEL * size, f->scale);
    }
}

/* What stands before the codes, of one column. */
static void e4m3_pack_head(const cake_weight *w, const char *row, int64_t at)
{
    const cake_format *f = w->format;
    const size_t size = cake_scale_bytes(f->scale);
    const int64_t column = at % PANEL;
    char *to = e4m3_panel(w, at / PANEL), *scales = to + e4m3_scales(f) + (size_t)column * size;
    if (f->factor)
        memcpy(to + (size_t)column * sizeof(float), row, sizeof(float));
    for (int g = 0; g < cake_format_groups(f, w->n_in); g++)
        memcpy(scales + (size_t)g * PANEL * size, row + cake_format_scales(f) + (size_t)g * size, size);
}

/* E4M3_ROWS rows of SQUARE words, `pitch` bytes apart, to as many values of k, PANEL bytes apart. False: one
 * is NaN. */
INLINE bool e4m3_pack_square(char *to, const char *src, size_t pitch)
{
    const __m256i bytes =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    const __m256i size = _mm256_set1_epi8(0x7F);
    __m256i word[2][SQUARE], bad = _mm256_setzero_si256();
    transpose_8(src, pitch, word[0]);
    transpose_8(src + SQUARE * pitch, pitch, word[1]);
    UNROLL for (int i = 0; i < SQUARE; i++)
    {
        /* of four values of k: those of rows 0 to 3 and 4 to 7, and of the next eight rows */
        const __m256i a = _mm256_shuffle_epi8(word[0][i], bytes), b = _mm256_shuffle_epi8(word[1][i], bytes);
        const __m256i low = _mm256_unpacklo_epi32(a, b), high = _mm256_unpackhi_epi32(a, b);
        const __m256i transposed[2] = {low, high};
        bad = _mm256_or_si256(bad, _mm256_cmpeq_epi8(_mm256_and_si256(a, size), size));
        bad = _mm256_or_si256(bad, _mm256_cmpeq_epi8(_mm256_and_si256(b, size), size));
        UNROLL for (int h = 0; h < 2; h++)
        {
            /* each half has words of rows 0, 8 and 0, 8 of two values of k; the other those of rows 4, 12 */
            const __m128i x = _mm256_castsi256_si128(transposed[h]),
                          y = _mm256_extracti128_si256(transposed[h], 1);
            const __m128i even = _mm_unpacklo_epi32(x, y), odd = _mm_unpackhi_epi32(x, y);
            e4m3_store_pair(to + (size_t)(4 * i + 2 * h) * PANEL, even, odd);
        }
    }
    return !_mm256_movemask_epi8(bad);
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
            good &= e4m3_pack_square(to + (size_t)k * PANEL + row, codes + (size_t)row * pitch + k, pitch);
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

/* Scales of a group of `halves` half panels that are `stride` bytes apart, times E4M3_FACTOR. False:
 * that might overflow, and scales are without it. */
INLINE bool e4m3_load_scales(vec *scale, const cake_format *f, const char *panel, size_t stride, int group,
                             const int halves)
{
    vec most = vec_set(0);
    UNROLL for (int h = 0; h < halves; h++)
    {
        const char *from = panel + (size_t)(h / 2) * stride;
        const float *factor = (const float *)from + h % 2 * LANES;
        vec one = codes_load_scale(from + e4m3_scales(f), 2 * group + h % 2, f->scale);
        if (f->factor)
            one = f->divides ? vec_div(one, vec_load(factor)) : vec_mul(one, vec_load(factor));
        most = vec_max(vec_max(one, vec_sub(vec_set(0), one)), most); /* NaN does not count */
        scale[h] = one;
    }
    if (!(vec_most(most) <= FLT_MAX / E4M3_FACTOR))
        return false;
    UNROLL for (int h = 0; h < halves; h++) scale[h] = vec_mul(scale[h], vec_set(E4M3_FACTOR));
    return true;
}

/* Values of a block, by what e4m3_load_scales has loaded and returned. AVX2 has denormal ones, for which a
 * product takes longer on some CPUs than a sum of a product and nothing. */
INLINE void e4m3_load(vec value[2 * E4M3_DEPTH], const char *block, const vec *scale, const bool scaled)
{
    vec_load_e4m3_block(block, value);
    UNROLL for (int i = 0; i < 2 * E4M3_DEPTH; i++)
    {
        if (!scaled)
            value[i] = vec_mul(value[i], vec_set(E4M3_FACTOR));
        value[i] = vec_fma(value[i], scale[i % 2], vec_set(-0.0F));
    }
}

/* to [n, PANEL] = values k to k + n of a panel. */
static void e4m3_dequantize_panel(float *to, const cake_weight *w, int64_t panel, int k, int n)
{
    const char *from = e4m3_panel(w, panel), *codes = from + e4m3_codes(w->format, w->n_in);
    const int group = e4m3_group(w);
    for (int end = k + n, next; k < end; k = next) {
        vec scale[2], value[2 * E4M3_DEPTH];
        const bool scaled = e4m3_load_scales(scale, w->format, from, 0, k / group, 2);
        next = (k / group + 1) * group < end ? (k / group + 1) * group : end;
        for (int block = k - k % E4M3_DEPTH; block < next; block += E4M3_DEPTH) {
            e4m3_load(value, codes + (size_t)block * PANEL, scale, scaled);
            UNROLL for (int i = 0; i < E4M3_DEPTH; i++) if (block + i >= k && block + i < next)
            {
                vec_store(to, value[2 * i]);
                vec_store(to + LANES, value[2 * i + 1]);
                to += PANEL;
            }
        }
    }
}

/* Few rows x [n, rows] that meet n values of k of panels: sum [rows, pitch], which the first block begins at
 * zero. */
typedef struct e4m3_meeting {
    const cake_weight *w;
    const float *x;
    float *sum;
    int64_t pitch;
    int k, n;
} e4m3_meeting;

/* Values of k together: their codes are a line of a cache. */
#define E4M3_STEPS (64 / PANEL)

/* A block of each of some panels, `stride` bytes apart, and their scales, as e4m3_load takes them. */
typedef struct e4m3_blocks {
    const char *codes;
    size_t stride;
    const vec *scale; /* [panels, 2] */
    bool scaled;
} e4m3_blocks;

/* sum [rows, panels, 2] += x [n, rows] times the blocks' values `at` to at + n. */
INLINE void e4m3_add(vec *sum, const float *x, const e4m3_blocks *b, const int panels, const int rows, int at,
                     int n)
{
    UNROLL for (int p = 0; p < panels; p++)
    {
        vec value[2 * E4M3_DEPTH];
        e4m3_load(value, b->codes + (size_t)p * b->stride, b->scale + 2 * p, b->scaled);
        UNROLL for (int i = 0; i < E4M3_DEPTH; i++) if (i >= at && i < at + n)
            UNROLL for (int r = 0; r < rows; r++)
        {
            const vec factor = vec_set(x[(i - at) * rows + r]);
            vec *to = &sum[2 * (r * panels + p)];
            to[0] = vec_fma(factor, value[2 * i], to[0]);
            to[1] = vec_fma(factor, value[2 * i + 1], to[1]);
        }
    }
}

/* Two panels together, where one has too few sums to hide an addition's latency. */
INLINE void e4m3_multiply(const e4m3_meeting *m, int64_t panel, const int panels, const int rows)
{
    const cake_format *f = m->w->format;
    const size_t stride = e4m3_panel_bytes(m->w);
    const char *from = e4m3_panel(m->w, panel);
    const char *codes = from + e4m3_codes(f, m->w->n_in);
    const int group = e4m3_group(m->w), halves = 2 * panels, end = m->k + m->n;
    const float *x = m->x;
    vec sum[2 * E4M3_FEW], scale[4];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < halves; h++) sum[r * halves + h] =
        m->k == 0 ? vec_set(0) : vec_load(m->sum + r * m->pitch + h * LANES);
    for (int k = m->k, next; k < end;) {
        next = (k / group + 1) * group < end ? (k / group + 1) * group : end;
        const bool scaled = e4m3_load_scales(scale, f, from, stride, k / group, halves);
        e4m3_blocks b = {codes + (size_t)k * PANEL, stride, scale, true};
        for (; scaled && k % E4M3_DEPTH == 0 && k + E4M3_STEPS <= next; k += E4M3_STEPS) {
            UNROLL for (int p = 0; p < panels; p++)
                _mm_prefetch(b.codes + (size_t)p * stride + CODES_AHEAD, _MM_HINT_T0);
            UNROLL for (int i = 0; i < E4M3_STEPS; i += E4M3_DEPTH)
            {
                e4m3_add(sum, x, &b, panels, rows, 0, E4M3_DEPTH);
                x += E4M3_DEPTH * rows;
                b.codes += E4M3_DEPTH * PANEL;
            }
        }
        b.scaled = scaled;
        for (; k < next; k++, x += rows) {
            b.codes = codes + (size_t)(k - k % E4M3_DEPTH) * PANEL;
            e4m3_add(sum, x, &b, panels, rows, k % E4M3_DEPTH, 1);
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < halves; h++)
        vec_store(m->sum + r * m->pitch + h * LANES, sum[r * halves + h]);
}

/* Rows <= E4M3_FEW; returns the number of panels, one or two, of which `left` are left. */
static int e4m3_multiply_rows(const e4m3_meeting *m, int64_t panel, int left, int rows)
{
    const int panels = left > 1 && rows < 3 ? 2 : 1;
    if (rows == 1 && panels == 2)
        e4m3_multiply(m, panel, 2, 1);
    else if (rows == 2 && panels == 2)
        e4m3_multiply(m, panel, 2, 2);
    else
        UNROLL for (int r = 1; r <= E4M3_FEW; r++) if (r == rows) e4m3_multiply(m, panel, 1, r);
    return panels;
}

/* to [w->n_in] = factor * W[row] */
static void e4m3_gather_row(float *to, const cake_weight *w, int64_t row, float factor)
{
    enum { SOME = 64 };
    float room[SOME * PANEL];
    for (int k = 0, n; k < w->n_in; k += n) {
        n = w->n_in - k < SOME ? w->n_in - k : SOME;
        e4m3_dequantize_panel(room, w, row / PANEL, k, n);
        for (int i = 0; i < n; i++)
            to[k + i] = room[i * PANEL + row % PANEL] * factor;
    }
}

#endif
