/* SPDX-License-Identifier: Apache-2.0
 *
 * The gated delta rule in plain C, row by row, prompt rows, too. Included once, by ref.c. In: rows and the
 * states of their slots. Out: results as in kernels.h, and the states after the rows.
 */
#ifndef CAKE_KERNELS_REF_DELTA_H
#define CAKE_KERNELS_REF_DELTA_H

#include <math.h>
#include <string.h>

#include "kernels/kernels.h"

static float silu(float x)
{
    return x / (1 + cake_expf(-x));
}

/* Convolution of one channel of one row; last [width - 1, channels] shifts by one input. */
static float convolve(const cake_deltanet *d, int64_t channel, float *last, float input)
{
    int64_t channels = cake_delta_channels(d);
    const float *weight = d->conv + channel * d->width;
    float sum = 0;
    for (int j = 0; j < d->width - 1; j++) {
        float *at = last + j * channels + channel;
        sum += weight[j] * *at;
        *at = j < d->width - 2 ? at[channels] : input;
    }
    return silu(sum + weight[d->width - 1] * input);
}

static void delta_conv(const cake_exec *exec, float *x, const cake_deltanet *d, const cake_row *rows,
                       int n_row)
{
    int64_t first, last, channels = cake_delta_channels(d);
    cake_exec_range(exec, channels, 1, &first, &last);
    for (int64_t t = 0; t < n_row; t++) {
        float *inputs = d->state + rows[t].slot * d->step + cake_delta_rule_size(d);
        for (int64_t c = first; c < last; c++) {
            for (int j = 0; rows[t].pos == 0 && j < d->width - 1; j++)
                inputs[j * channels + c] = 0;
            x[t * channels + c] = convolve(d, c, inputs, x[t * channels + c]);
        }
    }
}

/* out [dim] = x / sqrt(sum of squares + 1e-6) * scale */
static void unit(float *out, const float *x, int dim, float scale)
{
    float sum = 0;
    for (int i = 0; i < dim; i++)
        sum += x[i] * x[i];
    for (int i = 0; i < dim; i++)
        out[i] = x[i] / sqrtf(sum + 1e-6f) * scale;
}

/* One row and head: state [key_dim, value_dim], out [value_dim]. */
static void delta_step(const cake_deltanet *d, float *state, float *out, const float *q, const float *k,
                       const float *v, float decay, float beta)
{
    float seen[CAKE_DELTA_DIM] = {0};
    for (int i = 0; i < d->key_dim; i++)
        for (int j = 0; j < d->value_dim; j++) {
            state[i * d->value_dim + j] *= decay;
            seen[j] += k[i] * state[i * d->value_dim + j];
        }
    for (int j = 0; j < d->value_dim; j++)
        out[j] = 0;
    for (int i = 0; i < d->key_dim; i++)
        for (int j = 0; j < d->value_dim; j++) {
            state[i * d->value_dim + j] += k[i] * (beta * (v[j] - seen[j]));
            out[j] += q[i] * state[i * d->value_dim + j];
        }
}

static void delta_rule(const cake_exec *exec, float *out, const float *x, const float *a, const float *b,
                       const cake_deltanet *d, const cake_row *rows, int n_row)
{
    int64_t first, last, key = d->key_dim, value = d->value_dim, size = key * value;
    int64_t channels = cake_delta_channels(d);
    cake_exec_range(exec, d->n_value, 1, &first, &last);
    for (int64_t t = 0; t < n_row; t++)
        for (int64_t h = first; h < last; h++) {
            float q[CAKE_DELTA_DIM], k[CAKE_DELTA_DIM];
            const float *from = x + t * channels + cake_delta_key_head(d, (int)h) * key;
            float *state = d->state + rows[t].slot * d->step + h * size;
            float dt = a[t * d->n_value + h] + d->dt_bias[h];
            float soft = dt > 20 ? dt : cake_log1pf(cake_expf(dt));
            if (rows[t].pos == 0)
                memset(state, 0, (size_t)size * sizeof *state);
            unit(q, from, d->key_dim, 1 / sqrtf((float)key));
            unit(k, from + d->n_key * key, d->key_dim, 1);
            delta_step(d, state, out + (t * d->n_value + h) * value, q, k,
                       x + t * channels + 2 * d->n_key * key + h * value,
                       cake_expf(-cake_expf(d->a_log[h]) * soft),
                       1 / (1 + cake_expf(-b[t * d->n_value + h])));
        }
}

static void rmsnorm_gated(const cake_exec *exec, float *x, const float *gate, const float *weight, int n_row,
                          int dim, float eps)
{
    int64_t first, last;
    cake_exec_range(exec, n_row, 1, &first, &last);
    for (int64_t row = first; row < last; row++) {
        float *at = x + row * dim, sum = 0;
        for (int i = 0; i < dim; i++)
            sum += at[i] * at[i];
        float scale = 1 / sqrtf(sum / (float)dim + eps);
        for (int i = 0; i < dim; i++)
            at[i] = at[i] * scale * weight[i] * silu(gate[row * dim + i]);
    }
}

#endif
