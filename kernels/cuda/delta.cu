/* SPDX-License-Identifier: Apache-2.0
 *
 * In: rows of gated delta nets, and the states of their slots. Out: what kernels.h says (delta_conv, delta_rule), and
 * the states after the rows. Invariant: all rows go one by one, so it does not show where a prompt was cut; a
 * sequence's rows stand together, and are walked by the block at the first of them.
 */
#include "kernels/cuda/layout.h"
#include "kernels/cuda/words.h"

enum { CHANNELS = 128, COLUMNS = 32, PARTS = 4, THREADS = COLUMNS * PARTS };

static unsigned groups(int64_t n, int of)
{
    return (unsigned)((n + of - 1) / of);
}

__device__ __forceinline__ bool begins(const cake_row *rows, int row)
{
    return row == 0 || rows[row - 1].slot != rows[row].slot;
}

__device__ __forceinline__ float silu(float x)
{
    return x / (1 + expf(-x));
}

/* A thread a channel. grid: groups of channels, rows. */
__global__ void convolve(float *x, cake_delta d, const cake_row *rows, int n_tok)
{
    const int64_t channels = cake_delta_channels(&d), c = (int64_t)blockIdx.x * CHANNELS + threadIdx.x;
    const int first = (int)blockIdx.y, slot = rows[first].slot, kept = d.width - 1;
    if (!begins(rows, first) || c >= channels)
        return;
    float *state = d.state + slot * d.step + cake_delta_rule_size(&d), last[CAKE_DELTA_WIDTH];
    for (int j = 0; j < kept; j++)
        last[j] = rows[first].pos ? state[j * channels + c] : 0;
    for (int row = first; row < n_tok && rows[row].slot == slot; row++) {
        float input = x[row * channels + c], sum = 0;
        for (int j = 0; j < kept; j++) {
            sum += d.conv[c * d.width + j] * last[j];
            last[j] = j + 1 < kept ? last[j + 1] : input;
        }
        x[row * channels + c] = silu(sum + d.conv[c * d.width + kept] * input);
    }
    for (int j = 0; j < kept; j++)
        state[j * channels + c] = last[j];
}

void cake_cuda_delta_conv(float *x, const cake_delta *d, const cake_row *rows, int n_tok)
{
    CAKE_LAUNCH(convolve, dim3(groups(cake_delta_channels(d), CHANNELS), (unsigned)n_tok), dim3(CHANNELS), 0,
                x, *d, rows, n_tok);
}

/* to [dim] = x / sqrt(sum of squares + 1e-6) * scale */
__device__ __forceinline__ void make_unit(float *to, const float *x, int dim, float scale, float *place)
{
    float sum = 0;
    for (int i = (int)threadIdx.x; i < dim; i += THREADS)
        sum += x[i] * x[i];
    float root = sqrtf(block_sum(sum, place) + 1e-6f);
    for (int i = (int)threadIdx.x; i < dim; i += THREADS)
        to[i] = x[i] / root * scale;
}

/* 32 columns of a head's state, whose rows are dealt to four warps; they stay in the block's memory [key_dim, 32] while
 * its sequence goes by. grid: groups of columns, heads, rows. */
__global__ void step_rule(float *out, const float *x, const float *a, const float *b, cake_delta d,
                          const cake_row *rows, int n_tok)
{
    CAKE_SHARED(float, state);
    __shared__ float q[CAKE_DELTA_DIM], k[CAKE_DELTA_DIM], some[PARTS][COLUMNS], place[CAKE_WARP];
    const int first = (int)blockIdx.z, h = (int)blockIdx.y, slot = rows[first].slot;
    const int column = (int)threadIdx.x % COLUMNS, part = (int)threadIdx.x / COLUMNS;
    const int64_t channels = cake_delta_channels(&d);
    if (!begins(rows, first))
        return; /* the whole block */
    const int at = (int)blockIdx.x * COLUMNS + column;
    const bool there = at < d.value_dim;
    float *kept = d.state + slot * d.step + (int64_t)h * d.key_dim * d.value_dim;
    for (int i = part; i < d.key_dim; i += PARTS)
        state[i * COLUMNS + column] = there && rows[first].pos ? kept[(int64_t)i * d.value_dim + at] : 0;
    for (int row = first; row < n_tok && rows[row].slot == slot; row++) {
        const float *from = x + row * channels + (int64_t)(h / (d.n_value / d.n_key)) * d.key_dim;
        make_unit(q, from, d.key_dim, 1 / sqrtf((float)d.key_dim), place);
        make_unit(k, from + (int64_t)d.n_key * d.key_dim, d.key_dim, 1, place);
        float dt = a[(int64_t)row * d.n_value + h] + d.dt_bias[h], soft = dt > 20 ? dt : log1pf(expf(dt));
        float decay = expf(-expf(d.a_log[h]) * soft), beta = 1 / (1 + expf(-b[(int64_t)row * d.n_value + h]));
        float v =
            there ? x[row * channels + 2 * (int64_t)d.n_key * d.key_dim + (int64_t)h * d.value_dim + at] : 0;
        __syncthreads();
        float seen = 0;
        for (int i = part; i < d.key_dim; i += PARTS) {
            state[i * COLUMNS + column] *= decay;
            seen += k[i] * state[i * COLUMNS + column];
        }
        some[part][column] = seen;
        __syncthreads();
        seen = 0;
        for (int p = 0; p < PARTS; p++)
            seen += some[p][column];
        float change = beta * (v - seen), sum = 0;
        for (int i = part; i < d.key_dim; i += PARTS) {
            state[i * COLUMNS + column] += k[i] * change;
            sum += q[i] * state[i * COLUMNS + column];
        }
        __syncthreads();
        some[part][column] = sum;
        __syncthreads();
        if (part == 0 && there) {
            sum = 0;
            for (int p = 0; p < PARTS; p++)
                sum += some[p][column];
            out[((int64_t)row * d.n_value + h) * d.value_dim + at] = sum;
        }
        __syncthreads();
    }
    for (int i = part; i < d.key_dim; i += PARTS)
        if (there)
            kept[(int64_t)i * d.value_dim + at] = state[i * COLUMNS + column];
}

void cake_cuda_delta_rule(float *out, const float *x, const float *a, const float *b, const cake_delta *d,
                          const cake_row *rows, int n_tok)
{
    dim3 grid(groups(d->value_dim, COLUMNS), (unsigned)d->n_value, (unsigned)n_tok);
    CAKE_LAUNCH(step_rule, grid, dim3(THREADS), (size_t)d->key_dim * COLUMNS * sizeof(float), out, x, a, b,
                *d, rows, n_tok);
}
