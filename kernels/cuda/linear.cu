/* SPDX-License-Identifier: Apache-2.0
 *
 * In: rows that input_pack has packed, and a matrix. Out: their product, for generated rows of any number.
 * Invariant: the sum of an element is taken in an order that depends on the width of the matrix only: k is cut into
 * four parts, each of which a warp sums upwards 16 at a time, and the parts are added in order. So a row has the
 * bits of the row alone, whatever stands beside it.
 *
 * Matrices are row-major, rows padded with zeros to whole blocks of k; so are packed rows. A lane loads 16 bytes of
 * a row at a time, 8 neighbouring elements: which of them meet in one tile product does not matter as long as both
 * operands take the same (blocks of 32: lane t of four has elements 8t to 8t + 7, of which the first tile takes
 * the lower four and the second the upper four).
 *
 * Each weight is read once for up to 64 rows and goes to registers only; what is small and shared, the rows, comes
 * out of caches.
 */
#include "kernels/cuda/best.h"
#include "kernels/cuda/gate.h"
#include "kernels/cuda/layout.h"
#include "kernels/cuda/mma.h"

enum {
    PARTS = 4,    /* of k, a warp each */
    BANDS = 2,    /* of 16 outputs, in a block */
    COLUMNS = 16, /* outputs of a warp */
    ROWS = 8,     /* of x in a tile */
    AHEAD = 4     /* blocks of k whose weights are under way together */
};

/* Where part `part` of n blocks of k begins. */
__device__ __forceinline__ int part_begin(int n, int part)
{
    return (int)((int64_t)n * part / PARTS);
}

struct ending {
    const float *bias, *residual; /* as linear has them; may be NULL */
    leading lead;                 /* if it is a head, which has neither */
};

__device__ __forceinline__ float ended(const ending &end, float sum, int64_t at, int column)
{
    if (end.bias)
        sum += end.bias[column];
    return end.residual ? sum + end.residual[at] : sum;
}

/* The sums of a block's warps, each [TILES][4] as mma.h has them, side by side. */
template <int TILES>
__device__ __forceinline__ void spread(float part_of[PARTS][BANDS * COLUMNS][ROWS * TILES + 1],
                                       const float sum[TILES][4])
{
    const int lane = (int)threadIdx.x % CAKE_WARP, warp = (int)threadIdx.x / CAKE_WARP, g = lane / 4,
              t = lane % 4;
#pragma unroll
    for (int tile = 0; tile < TILES; tile++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            part_of[warp % PARTS][warp / PARTS * COLUMNS + g + 8 * (j / 2)][tile * ROWS + 2 * t + j % 2] =
                sum[tile][j];
    __syncthreads();
}

/* They are added part by part and written. A warp has all outputs of a row that are the block's. */
static_assert(BANDS * COLUMNS == CAKE_WARP, "a block's outputs are a group");
template <int TILES>
__device__ __forceinline__ void finish(float *out, const float sum[TILES][4], const ending &end, int n_out,
                                       int n_tok)
{
    __shared__ float part_of[PARTS][BANDS * COLUMNS]
                            [ROWS * TILES + 1]; /* one more: lanes meet different banks */
    spread<TILES>(part_of, sum);
    for (int i = (int)threadIdx.x; i < BANDS * COLUMNS * ROWS * TILES; i += PARTS * BANDS * CAKE_WARP) {
        int column = i % (BANDS * COLUMNS), r = i / (BANDS * COLUMNS);
        int to = (int)blockIdx.x * BANDS * COLUMNS + column, token = (int)blockIdx.y * ROWS * TILES + r;
        float total = part_of[0][column][r];
        for (int p = 1; p < PARTS; p++)
            total += part_of[p][column][r];
        int64_t at = (int64_t)token * n_out + to;
        if (token >= n_tok)
            continue;
        if (end.lead.leader)
            lead(out + at - to, end.lead, total, token, to - column, n_out);
        else if (to < n_out)
            out[at] = ended(end, total, at, to);
    }
}

/* What a gated MLP makes of two products: as finish, but that the bands have 16 outputs of the gate and the same of up; what the
 * one lets pass of the other is packed for the next product, rows of `width` elements. */
struct pairing {
    const float *gate_bias, *up_bias; /* may be NULL */
    int act, width;
};

template <typename T, int TILES>
__device__ __forceinline__ void finish_pair(T *out, const float sum[TILES][4], const pairing &pair, int n_out,
                                            int n_tok)
{
    __shared__ float part_of[PARTS][BANDS * COLUMNS][ROWS * TILES + 1];
    spread<TILES>(part_of, sum);
    for (int i = (int)threadIdx.x; i < COLUMNS * ROWS * TILES; i += PARTS * BANDS * CAKE_WARP) {
        int column = i % COLUMNS, r = i / COLUMNS;
        int to = (int)blockIdx.x * COLUMNS + column, token = (int)blockIdx.y * ROWS * TILES + r;
        if (to < pair.width && token < n_tok) {
            float gate = part_of[0][column][r], up = part_of[0][COLUMNS + column][r];
            for (int p = 1; p < PARTS; p++) {
                gate += part_of[p][column][r];
                up += part_of[p][COLUMNS + column][r];
            }
            if (to < n_out && pair.gate_bias)
                gate += pair.gate_bias[to];
            if (to < n_out && pair.up_bias)
                up += pair.up_bias[to];
            from_float(out[(int64_t)token * pair.width + to], to < n_out ? passed(up, gate, pair.act) : 0.0f);
        }
    }
}

/* What a warp sums: its part of k, COLUMNS outputs from first_out on, TILES tiles of rows from first_row on. */
template <typename T, int TILES>
__device__ __forceinline__ void sum_part(float sum[TILES][4], const uint16_t *x, const uint16_t *w,
                                         int first_out, int first_row, int n_out, int width, int n_tok)
{
    const int lane = (int)threadIdx.x % CAKE_WARP, part = (int)threadIdx.x / CAKE_WARP % PARTS, g = lane / 4,
              t = lane % 4;
    const int n_block = width / CAKE_CUDA_K;
    const int begin = part_begin(n_block, part), end_block = part_begin(n_block, part + 1);

    /* outputs and rows beyond the last one are computed from the last one, and not written */
    const uint16_t *upper = w + (int64_t)min(first_out + g, n_out - 1) * width + 8 * t;
    const uint16_t *lower = w + (int64_t)min(first_out + g + 8, n_out - 1) * width + 8 * t;
    const uint16_t *row[TILES];
    for (int i = 0; i < TILES; i++) {
        row[i] = x + (int64_t)min(first_row + ROWS * i + g, n_tok - 1) * width + 8 * t;
        for (int j = 0; j < 4; j++)
            sum[i][j] = 0;
    }

    for (int block = begin; block < end_block; block += AHEAD) {
        uint4 a[AHEAD], b[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            if (block + i < end_block) {
                a[i] = *(const uint4 *)(upper + (int64_t)(block + i) * CAKE_CUDA_K);
                b[i] = *(const uint4 *)(lower + (int64_t)(block + i) * CAKE_CUDA_K);
            }
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            if (block + i < end_block) {
                const uint32_t low[4] = {a[i].x, b[i].x, a[i].y, b[i].y},
                               high[4] = {a[i].z, b[i].z, a[i].w, b[i].w};
#pragma unroll
                for (int tile = 0; tile < TILES; tile++) {
                    uint4 r = *(const uint4 *)(row[tile] + (int64_t)(block + i) * CAKE_CUDA_K);
                    const uint32_t first[2] = {r.x, r.y}, second[2] = {r.z, r.w};
                    multiply_tile<T>(sum[tile], low, first);
                    multiply_tile<T>(sum[tile], high, second);
                }
            }
    }
}

/* TILES tiles of rows; a block of PARTS * BANDS warps. grid: groups of COLUMNS * BANDS outputs, groups of rows. */
template <typename T, int TILES>
__global__ void __launch_bounds__(PARTS *BANDS *CAKE_WARP)
    multiply_few(float *out, const uint16_t *x, const uint16_t *w, ending end, int n_out, int width,
                 int n_tok)
{
    const int band = (int)threadIdx.x / CAKE_WARP / PARTS;
    float sum[TILES][4];
    sum_part<T, TILES>(sum, x, w, ((int)blockIdx.x * BANDS + band) * COLUMNS, (int)blockIdx.y * ROWS * TILES,
                       n_out, width, n_tok);
    finish<TILES>(out, sum, end, n_out, n_tok);
}

/* The same of two matrices, a band each. grid: groups of COLUMNS outputs, groups of rows. */
template <typename T, int TILES>
__global__ void __launch_bounds__(PARTS *BANDS *CAKE_WARP)
    multiply_pair(T *out, const uint16_t *x, const uint16_t *gate, const uint16_t *up, pairing pair,
                  int n_out, int width, int n_tok)
{
    const int band = (int)threadIdx.x / CAKE_WARP / PARTS;
    float sum[TILES][4];
    sum_part<T, TILES>(sum, x, band ? up : gate, (int)blockIdx.x * COLUMNS, (int)blockIdx.y * ROWS * TILES,
                       n_out, width, n_tok);
    finish_pair<T, TILES>(out, sum, pair, n_out, n_tok);
}

/* The same in int8: the sums of a group of k are whole numbers, and are scaled as they are added up. */
template <int TILES>
__global__ void __launch_bounds__(PARTS *BANDS *CAKE_WARP)
    multiply_int8(float *out, const char *x, const char *w, ending end, int n_out, int width,
                  size_t step_of_row, int n_tok)
{
    enum { STEP = 64 }; /* bytes of k that four lanes load together: two tiles */
    const int lane = (int)threadIdx.x % CAKE_WARP, warp = (int)threadIdx.x / CAKE_WARP;
    const int part = warp % PARTS, band = warp / PARTS, g = lane / 4, t = lane % 4;
    const int first_out = ((int)blockIdx.x * BANDS + band) * COLUMNS,
              first_row = (int)blockIdx.y * ROWS * TILES;
    const int n_group = width / CAKE_I8_GROUP, last = part_begin(n_group, part + 1);
    const char *upper = w + min(first_out + g, n_out - 1) * step_of_row;
    const char *lower = w + min(first_out + g + 8, n_out - 1) * step_of_row;
    float sum[TILES][4];
#pragma unroll
    for (int tile = 0; tile < TILES; tile++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            sum[tile][j] = 0;
    for (int group = part_begin(n_group, part); group < last; group++) {
        const int k = group * CAKE_I8_GROUP + 16 * t;
        uint4 a[CAKE_I8_GROUP / STEP], b[CAKE_I8_GROUP / STEP];
#pragma unroll
        for (int i = 0; i < CAKE_I8_GROUP / STEP; i++) {
            a[i] = *(const uint4 *)(upper + k + STEP * i);
            b[i] = *(const uint4 *)(lower + k + STEP * i);
        }
        const float scale[2] = {((const float *)(upper + width))[group],
                                ((const float *)(lower + width))[group]};
#pragma unroll
        for (int tile = 0; tile < TILES; tile++) {
            const int row = first_row + ROWS * tile;
            int32_t whole[4] = {0, 0, 0, 0};
#pragma unroll
            for (int i = 0; i < CAKE_I8_GROUP / STEP; i++) {
                uint4 r = *(const uint4 *)(x + min(row + g, n_tok - 1) * step_of_row + k + STEP * i);
                const uint32_t low[4] = {a[i].x, b[i].x, a[i].y, b[i].y},
                               high[4] = {a[i].z, b[i].z, a[i].w, b[i].w};
                const uint32_t first[2] = {r.x, r.y}, second[2] = {r.z, r.w};
                multiply_bytes(whole, low, first);
                multiply_bytes(whole, high, second);
            }
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const char *token = x + min(row + 2 * t + j % 2, n_tok - 1) * step_of_row;
                sum[tile][j] = fmaf((float)whole[j], ((const float *)(token + width))[group] * scale[j / 2],
                                    sum[tile][j]);
            }
        }
    }
    finish<TILES>(out, sum, end, n_out, n_tok);
}

/* Float32 has no tile products of its own precision: a warp an output, lanes along k. */
__global__ void multiply_f32(float *out, const float *x, const float *w, ending end, int n_out, int width,
                             int n_tok)
{
    const int lane = (int)threadIdx.x % CAKE_WARP;
    const int column = (int)(blockIdx.x * blockDim.x + threadIdx.x) / CAKE_WARP;
    const int first_row = (int)blockIdx.y * ROWS, rows = min(n_tok - first_row, (int)ROWS);
    if (column >= n_out)
        return; /* the whole warp */
    float sum[ROWS] = {0};
    for (int k = lane; k < width; k += CAKE_WARP) {
        float weight = w[(int64_t)column * width + k];
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            if (i < rows)
                sum[i] += x[(int64_t)(first_row + i) * width + k] * weight;
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        float total = warp_sum(sum[i]);
        if (lane == 0 && i < rows) {
            int64_t at = (int64_t)(first_row + i) * n_out + column;
            out[at] = ended(end, total, at, column);
        }
    }
}

static unsigned groups(int n, int of)
{
    return (unsigned)((n + of - 1) / of);
}

template <typename T, int TILES>
static void launch_tiles(float *out, const void *x, const cake_weight *w, ending end, int n_tok)
{
    const int width = cake_cuda_width(w->dtype, w->n_in);
    const dim3 grid(groups(w->n_out, COLUMNS * BANDS), groups(n_tok, ROWS * TILES)),
        block(PARTS * BANDS * CAKE_WARP);
    if (w->dtype == CAKE_I8)
        CAKE_LAUNCH(multiply_int8<TILES>, grid, block, 0, out, (const char *)x, (const char *)w->data, end,
                    w->n_out, width, cake_cuda_step(CAKE_I8, w->n_in), n_tok);
    else
        CAKE_LAUNCH((multiply_few<T, TILES>), grid, block, 0, out, (const uint16_t *)x,
                    (const uint16_t *)w->data, end, w->n_out, width, n_tok);
}

template <typename T>
static void launch(float *out, const void *x, const cake_weight *w, ending end, int n_tok)
{
    if (n_tok <= ROWS)
        launch_tiles<T, 1>(out, x, w, end, n_tok);
    else if (n_tok <= 2 * ROWS)
        launch_tiles<T, 2>(out, x, w, end, n_tok);
    else if (n_tok <= 4 * ROWS)
        launch_tiles<T, 4>(out, x, w, end, n_tok);
    else
        launch_tiles<T, 8>(out, x, w, end, n_tok);
}

static void multiply(float *out, const void *x, const cake_weight *w, ending end, int n_tok)
{
    if (w->dtype == CAKE_F32)
        CAKE_LAUNCH(multiply_f32, dim3(groups(w->n_out, 8), groups(n_tok, ROWS)), dim3(8 * CAKE_WARP), 0, out,
                    (const float *)x, (const float *)w->data, end, w->n_out,
                    cake_cuda_width(w->dtype, w->n_in), n_tok);
    else if (w->dtype == CAKE_F16)
        launch<cake_f16>(out, x, w, end, n_tok);
    else
        launch<cake_bf16>(out, x, w, end, n_tok);
}

void cake_cuda_linear(float *out, const void *x, const cake_weight *w, const float *bias,
                      const float *residual, int n_tok)
{
    ending end = {bias, residual, {}};
    multiply(out, x, w, end, n_tok);
}

size_t cake_cuda_leaders(int n_out)
{
    return (size_t)groups_of_scores(n_out) * sizeof(cake_ranked);
}

void cake_cuda_scores(float *out, cake_best *best, const void *x, const cake_weight *w, bool all, float cap,
                      int n_tok, void *leaders)
{
    leading to = {(cake_ranked *)leaders, best, cap, all};
    ending end = {};
    if (w->dtype != CAKE_F32)
        end.lead = to;
    multiply(out, x, w, end, n_tok);
    if (w->dtype == CAKE_F32)
        cake_cuda_lead(out, to, w->n_out, n_tok);
    cake_cuda_best(to, out, w->n_out, n_tok);
}

template <typename T, int TILES>
static void launch_pair(void *to, const void *x, const cake_weight *gate, const cake_weight *up, pairing pair,
                        int n_tok)
{
    CAKE_LAUNCH((multiply_pair<T, TILES>), dim3(groups(pair.width, COLUMNS), groups(n_tok, ROWS * TILES)),
                dim3(PARTS * BANDS * CAKE_WARP), 0, (T *)to, (const uint16_t *)x,
                (const uint16_t *)gate->data, (const uint16_t *)up->data, pair, gate->n_out,
                cake_cuda_width(gate->dtype, gate->n_in), n_tok);
}

template <typename T>
static void launch_pairs(void *to, const void *x, const cake_weight *gate, const cake_weight *up,
                         pairing pair, int n_tok)
{
    if (n_tok <= ROWS)
        launch_pair<T, 1>(to, x, gate, up, pair, n_tok);
    else if (n_tok <= 2 * ROWS)
        launch_pair<T, 2>(to, x, gate, up, pair, n_tok);
    else if (n_tok <= 4 * ROWS)
        launch_pair<T, 4>(to, x, gate, up, pair, n_tok);
    else
        launch_pair<T, 8>(to, x, gate, up, pair, n_tok);
}

void cake_cuda_gated(void *to, const void *x, const cake_weight *gate, const float *gate_bias,
                     const cake_weight *up, const float *up_bias, int act, int n_tok)
{
    pairing pair = {gate_bias, up_bias, act, cake_cuda_width(gate->dtype, gate->n_out)};
    if (gate->dtype == CAKE_F16)
        launch_pairs<cake_f16>(to, x, gate, up, pair, n_tok);
    else
        launch_pairs<cake_bf16>(to, x, gate, up, pair, n_tok);
}
