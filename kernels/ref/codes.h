/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of integer codes in plain C; included by ref.c. In: rows of float32 and a quantised matrix, row by
 * row as format.h has it. Out: sums as codes.h defines them, which every table reproduces bit for bit.
 */
#ifndef CAKE_KERNELS_REF_CODES_H
#define CAKE_KERNELS_REF_CODES_H

#include <string.h>

#include "kernels/codes.h"
#include "kernels/ref/int8.h"

enum { CODES_TILE = 16, CODES_GROUPS = CAKE_CODES_SPAN / CAKE_CODES_GROUP };

/* A span of a row of x. */
typedef struct codes_input {
    int8_t value[CAKE_CODES_SPAN];
    float scale[CODES_GROUPS];
} codes_input;

/* A span of a column of W: code less zero. */
typedef struct codes_column {
    int16_t code[CAKE_CODES_SPAN];
    cake_codes_span span;
} codes_column;

static void codes_quantize(codes_input *to, const float *x, int n)
{
    memset(to, 0, sizeof *to);
    for (int i = 0; i < n; i += CAKE_CODES_GROUP)
        to->scale[i / CAKE_CODES_GROUP] =
            quantize(to->value + i, x + i, n - i < CAKE_CODES_GROUP ? n - i : CAKE_CODES_GROUP);
}

static void codes_unpack(codes_column *to, const cake_codes *c, const cake_weight *w, int64_t row, int k)
{
    const uint8_t *from = (const uint8_t *)w->data + (size_t)row * cake_weight_row_bytes(w);
    uint8_t header[CAKE_CODES_HEADER];
    float factor = 1;
    if (c->factor)
        memcpy(&factor, from, sizeof factor);
    cake_codes_read_header(header, c, w->format, from, w->n_in, k);
    cake_codes_scales(&to->span, c, header, factor);
    cake_codes_read(to->span.code, w->format, from, w->n_in, k);
    for (int i = 0; i < CAKE_CODES_SPAN; i++) {
        const uint8_t code = to->span.code[i];
        to->code[i] = (int16_t)((c->table       ? c->table[code]
                                 : c->bits == 8 ? (int8_t)code
                                                : code) -
                                to->span.zero[i / c->part]);
    }
}

/* The product of a part, and the sum of its x. */
static int32_t codes_part_sum(const codes_input *x, const codes_column *w, int first, int n, int32_t *total)
{
    int32_t whole = 0;
    *total = 0;
    for (int i = first; i < first + n; i++) {
        whole += x->value[i] * w->code[i];
        *total += x->value[i];
    }
    return whole;
}

/* sum += a span of one row times one column, of which there are n values. */
static float codes_add(float sum, const codes_input *x, const codes_column *w, const cake_codes *c, int n)
{
    int32_t group = 0;
    for (int part = 0, first; first = part * c->part, first < n; part++) {
        int32_t total, whole = codes_part_sum(x, w, first, c->part, &total);
        const float scale = x->scale[first / CAKE_CODES_GROUP];
        if (c->whole) {
            group += w->span.whole[part] * whole;
            if (part % 2) {
                sum = fmaf((float)group, scale * w->span.unit, sum);
                group = 0;
            }
            continue;
        }
        sum = fmaf((float)whole, scale * w->span.scale[part], sum);
        if (c->minimum)
            sum = fmaf(scale * (float)total, w->span.minimum[part], sum);
    }
    return sum;
}

/* sum [CODES_TILE, CODES_TILE] = rows x [n_row, n_in] times columns [first, first + n) of W. */
static void codes_tile(float *sum, const float *x, int n_row, const cake_weight *w, int64_t first, int n)
{
    cake_codes c;
    codes_input input[CODES_TILE];
    codes_column column[CODES_TILE];
    cake_codes_of(&c, w->format);
    memset(sum, 0, CODES_TILE * CODES_TILE * sizeof *sum);
    for (int k = 0; k < w->n_in; k += CAKE_CODES_SPAN) {
        const int here = w->n_in - k < CAKE_CODES_SPAN ? w->n_in - k : CAKE_CODES_SPAN;
        for (int i = 0; i < n_row; i++)
            codes_quantize(&input[i], x + (int64_t)i * w->n_in + k, here);
        for (int j = 0; j < n; j++)
            codes_unpack(&column[j], &c, w, first + j, k);
        for (int i = 0; i < n_row; i++)
            for (int j = 0; j < n; j++)
                sum[i * CODES_TILE + j] = codes_add(sum[i * CODES_TILE + j], &input[i], &column[j], &c, here);
    }
}

/* linear of kernels.h. */
static void linear_codes(const cake_exec *exec, float *out, const float *x, const cake_weight *w,
                         const float *bias, const float *residual, int n_row)
{
    int64_t first, last, n_out = w->n_out;
    cake_exec_range(exec, n_out, 1, &first, &last);
    for (int64_t row = 0; row < n_row; row += CODES_TILE)
        for (int64_t column = first; column < last; column += CODES_TILE) {
            float sum[CODES_TILE * CODES_TILE];
            const int rows = n_row - row < CODES_TILE ? (int)(n_row - row) : CODES_TILE,
                      n = last - column < CODES_TILE ? (int)(last - column) : CODES_TILE;
            codes_tile(sum, x + row * w->n_in, rows, w, column, n);
            for (int i = 0; i < rows; i++)
                for (int j = 0; j < n; j++) {
                    const int64_t at = (row + i) * n_out + column + j;
                    float value = sum[i * CODES_TILE + j];
                    if (bias)
                        value += bias[column + j];
                    out[at] = residual ? value + residual[at] : value;
                }
        }
}

#endif
