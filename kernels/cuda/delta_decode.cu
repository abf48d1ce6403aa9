/* SPDX-License-Identifier: Apache-2.0
 *
 * In: rows of gated delta nets, and the states of their slots. Out: delta_conv for all rows, delta_rule for
 * rows that are not of prompts (kernels.h), and the states after the rows. Invariant: the convolution's sums
 * are taken in one order wherever a span begins; generated rows go one by one.
 */
#include "kernels/cuda/device_util.h"
#include "kernels/cuda/layout.h"

enum { CHANNELS = 128, AHEAD = 8, COLUMNS = 32, PARTS = 4, THREADS = COLUMNS * PARTS };

static unsigned groups(int64_t n, int of)
{
    return (unsigned)((n + of - 1) / of);
}

__device__ __forceinline__ float silu(float x)
{
    return x / (1 + expf(-x));
}

/* Input j of the width - 1 that precede a span, of one channel: from rows before it, or from the slot's
 * state. */
__device__ __forceinline__ float input_before(const float *x, const cake_deltanet &d, const cake_row *rows,
                                              const cake_cuda_spans &spans, int span, int j, int64_t channel)
{
    const int64_t channels = cake_delta_channels(&d);
    const int begun = spans.row[spans.first[span]], at = spans.row[span] - (d.width - 1) + j;
    if (at >= begun)
        return x[at * channels + channel];
    if (rows[begun].pos == 0)
        return 0;
    return d.state[rows[begun].slot * d.step + cake_delta_rule_size(&d) +
                   (at - begun + d.width - 1) * channels + channel];
}

/* Keeps the inputs that precede each span before spans overwrite them: before [span, width - 1, channels].
 * grid: groups of channels, spans. */
__global__ void keep_inputs(float *before, const float *x, cake_deltanet d, const cake_row *rows,
                            cake_cuda_spans spans)
{
    begin_kernel();
    const int64_t channels = cake_delta_channels(&d), c = (int64_t)blockIdx.x * CHANNELS + threadIdx.x;
    const int span = (int)blockIdx.y;
    if (c >= channels)
        return;
    for (int j = 0; j < d.width - 1; j++)
        before[((int64_t)span * (d.width - 1) + j) * channels + c] =
            input_before(x, d, rows, spans, span, j, c);
}

/* A thread for each channel; several rows are read before they are written. before: NULL where each slot has
 * one span only. grid: groups of channels, spans. */
__global__ void convolve(float *x, const float *before, cake_deltanet d, const cake_row *rows,
                         cake_cuda_spans spans)
{
    begin_kernel();
    const int64_t channels = cake_delta_channels(&d), c = (int64_t)blockIdx.x * CHANNELS + threadIdx.x;
    const int span = (int)blockIdx.y, kept = d.width - 1, end = spans.end[span];
    if (c >= channels)
        return;
    float last[CAKE_DELTA_WIDTH], weight[CAKE_DELTA_WIDTH];
#pragma unroll
    for (int j = 0; j < CAKE_DELTA_WIDTH; j++) {
        weight[j] = j <= kept ? d.conv[c * d.width + j] : 0;
        last[j] = 0;
        if (j < kept)
            last[j] = before ? before[((int64_t)span * kept + j) * channels + c]
                             : input_before(x, d, rows, spans, span, j, c);
    }
    for (int row = spans.row[span]; row < end; row += AHEAD) {
        float input[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            input[i] = row + i < end ? x[(row + i) * channels + c] : 0;
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            if (row + i < end) {
                float sum = 0;
#pragma unroll
                for (int j = 0; j < CAKE_DELTA_WIDTH - 1; j++)
                    if (j < kept) {
                        sum = fused(weight[j], last[j], sum);
                        last[j] = j + 1 < kept ? last[j + 1] : input[i];
                    }
                x[(row + i) * channels + c] = silu(fused(d.conv[c * d.width + kept], input[i], sum));
            }
    }
    if (span + 1 < spans.n && spans.first[span + 1] == spans.first[span])
        return; /* another span of the slot follows, whose end writes the state */
    float *state = d.state + rows[end - 1].slot * d.step + cake_delta_rule_size(&d);
#pragma unroll
    for (int j = 0; j < CAKE_DELTA_WIDTH - 1; j++)
        if (j < kept)
            state[j * channels + c] = last[j];
}

size_t cake_cuda_delta_before(const cake_deltanet *d)
{
    return (size_t)d->width * (size_t)cake_delta_channels(d) * sizeof(float);
}

void cake_cuda_delta_conv(float *x, const cake_deltanet *d, const cake_row *rows,
                          const cake_cuda_spans *spans, void *before)
{
    const dim3 grid(groups(cake_delta_channels(d), CHANNELS), (unsigned)spans->n);
    bool follow = false;
    for (int i = 0; i < spans->n; i++)
        follow = follow || spans->first[i] != i;
    if (follow)
        CAKE_LAUNCH(keep_inputs, grid, dim3(CHANNELS), 0, (float *)before, x, *d, rows, *spans);
    CAKE_LAUNCH(convolve, grid, dim3(CHANNELS), 0, x, follow ? (const float *)before : nullptr, *d, rows,
                *spans);
}

/* to [dim] = x / sqrt(sum of squares + 1e-6) * scale */
__device__ __forceinline__ void make_unit(float *to, const float *x, int dim, float scale, float *place)
{
    float sum = 0;
    for (int i = (int)threadIdx.x; i < dim; i += THREADS)
        sum = fused(x[i], x[i], sum);
    float root = sqrtf(block_sum(sum, place) + 1e-6f);
    for (int i = (int)threadIdx.x; i < dim; i += THREADS)
        to[i] = x[i] / root * scale;
}

/* 32 columns of a head's state [key_dim, 32], whose rows are divided over four warps; they stay in shared
 * memory while the rows of a span are processed one by one. grid: groups of columns, heads, spans. */
__global__ void step_rule(float *out, const float *x, const float *a, const float *b, cake_deltanet d,
                          const cake_row *rows, cake_cuda_spans spans)
{
    begin_kernel();
    CAKE_SHARED(float, state);
    __shared__ float q[CAKE_DELTA_DIM], k[CAKE_DELTA_DIM], some[PARTS][COLUMNS], place[CAKE_WARP];
    const int first = spans.row[blockIdx.z], end = spans.end[blockIdx.z], h = (int)blockIdx.y;
    const int column = (int)threadIdx.x % COLUMNS, part = (int)threadIdx.x / COLUMNS;
    const int64_t channels = cake_delta_channels(&d);
    const int at = (int)blockIdx.x * COLUMNS + column;
    const bool there = at < d.value_dim;
    float *kept = d.state + rows[first].slot * d.step + (int64_t)h * d.key_dim * d.value_dim;
    const bool begun = there && rows[first].pos;
    for (int from = part; from < d.key_dim; from += AHEAD * PARTS) {
        float next[AHEAD]; /* loads in flight together */
#pragma unroll
        for (int e = 0; e < AHEAD; e++) {
            const int i = from + e * PARTS;
            next[e] = begun && i < d.key_dim ? kept[(int64_t)i * d.value_dim + at] : 0;
        }
#pragma unroll
        for (int e = 0; e < AHEAD; e++)
            if (from + e * PARTS < d.key_dim)
                state[(from + e * PARTS) * COLUMNS + column] = next[e];
    }
    for (int row = first; row < end; row++) {
        const float *from = x + row * channels + (int64_t)cake_delta_key_head(&d, h) * d.key_dim;
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
            seen = fused(k[i], state[i * COLUMNS + column], seen);
        }
        some[part][column] = seen;
        __syncthreads();
        seen = 0;
        for (int p = 0; p < PARTS; p++)
            seen += some[p][column];
        float change = beta * (v - seen), sum = 0;
        for (int i = part; i < d.key_dim; i += PARTS) {
            state[i * COLUMNS + column] = fused(k[i], change, state[i * COLUMNS + column]);
            sum = fused(q[i], state[i * COLUMNS + column], sum);
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

void cake_cuda_delta_decode(float *out, const float *x, const float *a, const float *b,
                            const cake_deltanet *d, const cake_row *rows, const cake_cuda_spans *spans)
{
    const dim3 grid(groups(d->value_dim, COLUMNS), (unsigned)d->n_value, (unsigned)spans->n);
    CAKE_LAUNCH(step_rule, grid, dim3(THREADS), (size_t)d->key_dim * COLUMNS * sizeof(float), out, x, a, b,
                *d, rows, *spans);
}
