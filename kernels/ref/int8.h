/* SPDX-License-Identifier: Apache-2.0
 *
 * Products with int8 matrices in plain C; included by ref.c. In: rows of float32 and a matrix in int8. Out:
 * sums, which every table reproduces bit for bit.
 */
#ifndef CAKE_KERNELS_REF_INT8_H
#define CAKE_KERNELS_REF_INT8_H

#include <float.h>
#include <math.h>

#include "kernels/int8.h"

/* A group of x: bytes and their scale, largest absolute value over 127 in float32. Values below CAKE_I8_LEAST
 * are zeros; a group that is not finite has the scale NaN. */
static float quantize(int8_t *to, const float *x, int n)
{
    float most = 0;
    bool finite = true;
    for (int i = 0; i < n; i++) {
        finite = finite && fabsf(x[i]) <= FLT_MAX;
        most = fmaxf(most, fabsf(x[i]));
    }
    float factor = finite && most >= CAKE_I8_LEAST ? 127 / most : 0;
    for (int i = 0; i < n; i++)
        to[i] = (int8_t)(factor > 0 ? rintf(x[i] * factor) : 0);
    return !finite ? NAN : factor > 0 ? most / 127 : 0;
}

#define COLUMNS 64 /* that share a group of x */

/* sum [n] = row x [n_in] times columns [first, first + n) of W, n <= COLUMNS. */
static void sum_int8(float *sum, const float *x, const cake_weight *w, int64_t first, int n)
{
    size_t bytes = cake_row_bytes(CAKE_I8, w->n_in);
    int8_t value[CAKE_I8_GROUP];
    for (int i = 0; i < n; i++)
        sum[i] = 0;
    for (int k = 0; k < w->n_in; k += CAKE_I8_GROUP) {
        int length = w->n_in - k < CAKE_I8_GROUP ? w->n_in - k : CAKE_I8_GROUP;
        float scale = quantize(value, x + k, length);
        for (int i = 0; i < n; i++) {
            const uint16_t *row = (const uint16_t *)((const char *)w->data + (size_t)(first + i) * bytes);
            const int8_t *weight = (const int8_t *)(row + cake_i8_groups(w->n_in)) + k;
            int32_t whole = 0;
            for (int j = 0; j < length; j++)
                whole += value[j] * weight[j];
            sum[i] = fmaf((float)whole, scale * cake_bf16_to_f32(row[k / CAKE_I8_GROUP]), sum[i]);
        }
    }
}

/* linear of kernels.h. */
static void linear_int8(const cake_exec *exec, float *out, const float *x, const cake_weight *w,
                        const float *bias, const float *residual, int n_row)
{
    int64_t first, last, n_out = w->n_out;
    cake_exec_range(exec, n_out, 1, &first, &last);
    for (int64_t row = 0; row < n_row; row++)
        for (int64_t column = first; column < last; column += COLUMNS) {
            float sum[COLUMNS];
            int n = last - column < COLUMNS ? (int)(last - column) : COLUMNS;
            sum_int8(sum, x + row * w->n_in, w, column, n);
            for (int i = 0; i < n; i++) {
                int64_t at = row * n_out + column + i;
                if (bias)
                    sum[i] += bias[column + i];
                out[at] = residual ? sum[i] + residual[at] : sum[i];
            }
        }
}

#undef COLUMNS

#endif
