/* SPDX-License-Identifier: Apache-2.0
 *
 * In: rows of a matrix in float32. Out: the same in int8, and back. Used while weights are loaded. Invariant:
 * the result depends on the row only, and every float has a result.
 */
#include "kernels/int8.h"
#include "kernels/format.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define ROUND 0x1.8p23F /* added to a small float, it leaves the nearest integer, ties to even */

size_t cake_row_bytes(cake_dtype dtype, int n)
{
    if (dtype != CAKE_I8)
        return (size_t)n * cake_dtype_bytes(dtype);
    size_t bytes = (size_t)cake_i8_groups(n) * 2 + (size_t)n;
    return bytes + bytes % 2;
}

size_t cake_weight_row_bytes(const cake_weight *w)
{
    return w->format ? cake_format_row_bytes(w->format, w->n_in) : cake_row_bytes(w->dtype, w->n_in);
}

/* Bits of the largest absolute value: they sort like the values, with NaN above all. Compared as signed
 * integers, which older vector instructions support. */
static inline uint32_t largest(const float *in, int n)
{
    int32_t most = 0;
    for (int i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, &in[i], sizeof bits);
        bits &= 0x7FFFFFFF;
        most = bits > most ? bits : most;
    }
    return (uint32_t)most;
}

/* Full groups have their own instance, in which n is a constant, so that the loop vectorises. */
static inline __attribute__((always_inline)) uint16_t convert_group(int8_t *to, size_t step, const float *in,
                                                                    int n)
{
    uint32_t bits = largest(in, n);
    float most;
    memcpy(&most, &bits, sizeof most);
    for (int i = 0; i < n; i++)
        to[(size_t)i * step] = 0;
    if (!(most <= FLT_MAX))
        return cake_bf16_from_f32(NAN);
    if (most < CAKE_I8_LEAST)
        return 0;
    uint16_t scale = cake_bf16_from_f32(most / 127);
    float factor = 1 / cake_bf16_to_f32(scale);
    for (int i = 0; i < n; i++) { /* +-127.5 can occur, since the scale is rounded */
        int value = (int)(in[i] * factor + ROUND - ROUND);
        to[(size_t)i * step] = (int8_t)(value > 127 ? 127 : value < -127 ? -127 : value);
    }
    return scale;
}

void cake_i8_from(void *row, const void *in, cake_dtype from, int n)
{
    uint16_t *scale = row;
    int8_t *value = (int8_t *)(scale + cake_i8_groups(n));
    for (int k = 0; k < n; k += CAKE_I8_GROUP, scale++) {
        float group[CAKE_I8_GROUP];
        int left = n - k < CAKE_I8_GROUP ? n - k : CAKE_I8_GROUP;
        cake_to_f32(group, (const char *)in + (size_t)k * cake_dtype_bytes(from), from, left);
        *scale = left == CAKE_I8_GROUP ? convert_group(value + k, 1, group, CAKE_I8_GROUP)
                                       : convert_group(value + k, 1, group, left);
    }
    if (n % 2)
        value[n] = 0;
}

uint16_t cake_i8_line(int8_t *code, size_t step, const float *in, int n)
{
    return convert_group(code, step, in, n);
}

void cake_i8_to_f32(float *out, const void *row, int n)
{
    const uint16_t *scale = row;
    const int8_t *value = (const int8_t *)(scale + cake_i8_groups(n));
    for (int k = 0; k < n; k++)
        out[k] = (float)value[k] * cake_bf16_to_f32(scale[k / CAKE_I8_GROUP]);
}
