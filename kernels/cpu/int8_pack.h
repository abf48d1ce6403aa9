/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices in int8, written with vec_*.h: quantises rows and packs them for int8.h; included once by each
 * instruction set's file.
 *
 * In: rows of floats or halves, rows as kernels/int8.h has them. Out: such rows, a packed matrix: panels of
 * I8_PANEL columns; a panel is groups of CAKE_I8_GROUP values of k (the last one may be shorter); a group is
 * the columns' scales, which take turns as vec_load_pair has it, then for every four values of k the columns'
 * weights; plus 128, so that they are unsigned, unless the instruction takes signed ones.
 *
 * Invariant: the same bytes as kernels/int8.c makes.
 */
#ifndef CAKE_KERNELS_CPU_INT8_PACK_H
#define CAKE_KERNELS_CPU_INT8_PACK_H

#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/pack.h"
#include "kernels/int8.h"
#include "kernels/tensor.h"

#define I8_PANEL (2 * LANES)
#define I8_STEP  4                       /* values of k side by side */
#define I8_ZERO  (DOT_SIGNED ? 0 : 0x80) /* the byte that stands for zero */

static int64_t i8_steps(int n)
{
    return ((int64_t)n + I8_STEP - 1) / I8_STEP;
}

/* Bytes of whole groups of n values of k of a panel. */
static size_t i8_bytes(int n)
{
    return (size_t)cake_i8_groups(n) * I8_PANEL * 2 + (size_t)i8_steps(n) * I8_STEP * I8_PANEL;
}

static size_t i8_weight_bytes(int n_out, int n_in)
{
    return ((size_t)n_out + I8_PANEL - 1) / I8_PANEL * i8_bytes(n_in);
}

/* Offset of the group of k that holds W[row][k]. */
static char *i8_group(const cake_weight *w, int64_t row, int k)
{
    return (char *)w->data + (size_t)(row / I8_PANEL) * i8_bytes(w->n_in) +
           i8_bytes(k / CAKE_I8_GROUP * CAKE_I8_GROUP);
}

/* Index of a row's scale among those of its group. */
static int64_t i8_scale_index(int64_t row)
{
    int64_t column = row % I8_PANEL;
    return column < LANES ? 2 * column : 2 * (column - LANES) + 1;
}

/* One group of one row: n weights. */
static void i8_pack_group(char *to, int64_t row, const uint16_t *scale, const int8_t *value, int n)
{
    memcpy(to + 2 * i8_scale_index(row), scale, sizeof *scale);
    to += I8_PANEL * 2 + row % I8_PANEL * I8_STEP;
    for (int k = 0; k < n; k += I8_STEP, to += I8_PANEL * I8_STEP) {
        uint8_t four[I8_STEP] = {I8_ZERO, I8_ZERO, I8_ZERO, I8_ZERO};
        for (int i = 0; i < I8_STEP && k + i < n; i++)
            four[i] = (uint8_t)value[k + i] ^ I8_ZERO;
        memcpy(to, four, sizeof four);
    }
}

/* Packs a whole group for all rows of a panel: rows are `pitch` bytes apart. */
static void i8_pack_square(char *to, const char *scale, const char *value, size_t pitch)
{
    for (int row = 0; row < I8_PANEL; row++)
        memcpy(to + 2 * i8_scale_index(row), scale + (size_t)row * pitch, 2);
    to += I8_PANEL * 2;
    for (int k = 0; k < CAKE_I8_GROUP; k += LINE * I8_STEP)
        pack_words(value + k, pitch, to + k * I8_PANEL, (char)I8_ZERO);
}

static void i8_weight_pack(const cake_weight *w, const void *src, int first, int n_row)
{
    size_t pitch = cake_row_bytes(CAKE_I8, w->n_in), scales = (size_t)cake_i8_groups(w->n_in) * 2;
    for (int64_t row = first, end; row < (int64_t)first + n_row; row = end) {
        const char *rows = (const char *)src + (size_t)(row - first) * pitch;
        end = (row / I8_PANEL + 1) * I8_PANEL;
        end = end < (int64_t)first + n_row ? end : (int64_t)first + n_row;
        /* a group's lines stay in L1 until all rows are written */
        for (int k = 0, n; k < w->n_in; k += n) {
            n = w->n_in - k < CAKE_I8_GROUP ? w->n_in - k : CAKE_I8_GROUP;
            const char *scale = rows + k / CAKE_I8_GROUP * 2, *value = rows + scales + k;
            if (end - row == I8_PANEL && n == CAKE_I8_GROUP)
                i8_pack_square(i8_group(w, row, k), scale, value, pitch);
            else
                for (int64_t r = row; r < end; r++, scale += pitch, value += pitch)
                    i8_pack_group(i8_group(w, r, k), r, (const uint16_t *)scale, (const int8_t *)value, n);
        }
    }
}

/* The scale of n values, and what they are multiplied by; 0: their codes are zeros. */
INLINE uint16_t i8_scale(const void *in, cake_dtype from, size_t at, int n, float *factor)
{
    wholes sizes = whole_set(0);
    for (int i = 0; i < n; i += LANES)
        sizes = whole_max(sizes, whole_size(vec_load_as(in, from, at + (size_t)i, n - i)));
    int32_t bits = whole_most(sizes);
    float most;
    memcpy(&most, &bits, sizeof most);
    bool finite = most <= FLT_MAX;
    *factor = 0;
    if (!finite || most < CAKE_I8_LEAST)
        return finite ? 0 : cake_bf16_from_f32(NAN);
    uint16_t scale = cake_bf16_from_f32(most / 127);
    *factor = 1 / cake_bf16_to_f32(scale);
    return scale;
}

/* The codes of n <= CAKE_I8_GROUP values. None needs a bound: a scale is rounded by less than a part in 256,
 * which leaves the largest below 127.5. */
INLINE void i8_codes(int8_t *to, const void *in, cake_dtype from, size_t at, int n, float factor)
{
    int32_t whole[CAKE_I8_GROUP];
    if (factor <= 0) {
        memset(to, 0, (size_t)n);
        return;
    }
    for (int i = 0; i < n; i += LANES) {
        wholes v = whole_round(vec_mul(vec_load_as(in, from, at + (size_t)i, n - i), vec_set(factor)));
        memcpy(whole + i, &v, sizeof v);
    }
    for (int i = 0; i < n; i++)
        to[i] = (int8_t)whole[i];
}

/* As convert_group of kernels/int8.c does it; n is a constant where groups are whole. */
INLINE uint16_t i8_convert_group(int8_t *to, const void *in, cake_dtype from, size_t at, int n)
{
    float factor;
    uint16_t scale = i8_scale(in, from, at, n, &factor);
    i8_codes(to, in, from, at, n, factor);
    return scale;
}

/* A row as cake_i8_from makes it. */
static void i8_convert(void *row, const void *in, cake_dtype from, int n)
{
    uint16_t *scale = row;
    int8_t *value = (int8_t *)(scale + cake_i8_groups(n));
    for (int k = 0; k < n; k += CAKE_I8_GROUP, scale++)
        *scale = n - k >= CAKE_I8_GROUP ? i8_convert_group(value + k, in, from, (size_t)k, CAKE_I8_GROUP)
                                        : i8_convert_group(value + k, in, from, (size_t)k, n - k);
    if (n % 2)
        value[n] = 0;
}

/* to [w->n_in] = factor * W[row] */
static void i8_gather_row(float *to, const cake_weight *w, int64_t row, float factor)
{
    for (int k = 0; k < w->n_in; k++) {
        const char *group = i8_group(w, row, k);
        uint16_t scale;
        memcpy(&scale, group + 2 * i8_scale_index(row), sizeof scale);
        int64_t at =
            k % CAKE_I8_GROUP / I8_STEP * I8_PANEL * I8_STEP + row % I8_PANEL * I8_STEP + k % I8_STEP;
        int value = (int8_t)((uint8_t)group[I8_PANEL * 2 + at] ^ I8_ZERO);
        to[k] = factor * ((float)value * cake_bf16_to_f32(scale));
    }
}

#endif
