/* SPDX-License-Identifier: Apache-2.0
 *
 * In: rows that input_pack has packed, and a matrix. Out: their product, for generated rows of any number.
 * Invariant: the sum of an element is taken in an order that depends on the matrix only: k is cut into parts
 * (layout.h), each of which a warp sums upwards 16 at a time, and the parts are added in order. So a row has
 * the bits of the row alone, whatever rows are computed with it.
 *
 * Matrices are row-major, rows padded with zeros to whole blocks of k; so are packed rows. A lane loads 16
 * bytes of a row at a time, 8 neighbouring elements: which of them meet in one tile product does not matter
 * as long as both operands take the same (blocks of 32: lane t of four has elements 8t to 8t + 7, of which
 * the first tile takes the lower four and the second the upper four).
 *
 * Each weight is read once for up to 16 rows (64 in int8) and goes to registers only; rows, which are small
 * and shared, come from caches. gemm.cu multiplies more rows than that.
 */
#include "kernels/cuda/epilogue.h"
#include "kernels/cuda/layout.h"
#include "kernels/cuda/mma.h"

enum {
    PARTS = CAKE_CUDA_PARTS,
    COLUMNS = 16, /* outputs of a warp */
    AHEAD = 4     /* blocks of k whose weights are loaded together */
};

/* The warps of a block: one for each part of k and band of 16 outputs; with several matrices, the bands of
 * each. */
template <int CUT> struct block_of {
    enum {
        BANDS = CUT > 1 ? 2 : 4,
        THREADS = CUT * BANDS * CAKE_WARP,
        AT_ONCE = 512 / THREADS /* blocks on a multiprocessor, if a thread has 128 registers */
    };
    static_assert(BANDS * COLUMNS % CAKE_WARP == 0, "a block's outputs are groups");
};

/* Adds the sums of a block's warps, each [TILES][4] as mma.h has them, part by part, and stores them: group y
 * of the outputs. */
template <int TILES, int CUT, typename END>
__device__ __forceinline__ void finish(const END &end, const float sum[TILES][4], int y, int n_row)
{
    enum { SUMS = block_of<CUT>::BANDS * COLUMNS, OUTPUTS = SUMS / END::MATRICES };
    __shared__ float part_of[CUT][SUMS]
                            [ROWS * TILES + 1]; /* one row more, so that lanes meet different banks */
    const int lane = (int)threadIdx.x % CAKE_WARP, warp = (int)threadIdx.x / CAKE_WARP, g = lane / 4,
              t = lane % 4;
#pragma unroll
    for (int tile = 0; tile < TILES; tile++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            part_of[warp % CUT][warp / CUT * COLUMNS + g + 8 * (j / 2)][tile * ROWS + 2 * t + j % 2] =
                sum[tile][j];
    __syncthreads();
    for (int i = (int)threadIdx.x; i < OUTPUTS * ROWS * TILES; i += block_of<CUT>::THREADS) {
        const int column = i % OUTPUTS, r = i / OUTPUTS, token = (int)blockIdx.x * ROWS * TILES + r;
        float total[END::MATRICES];
        for (int m = 0; m < END::MATRICES; m++) {
            total[m] = part_of[0][m * OUTPUTS + column][r];
            for (int p = 1; p < CUT; p++)
                total[m] += part_of[p][m * OUTPUTS + column][r];
        }
        if (token < n_row)
            end.put(total, token, y * OUTPUTS + column);
    }
}

/* Sums of a warp: over its part of k, for COLUMNS outputs from first_out on and TILES tiles of rows from
 * first_row on. */
template <typename T, int TILES, int CUT>
__device__ __forceinline__ void sum_part(float sum[TILES][4], const uint16_t *x, const uint16_t *w,
                                         int first_out, int first_row, int n_out, int width, int n_row)
{
    const int lane = (int)threadIdx.x % CAKE_WARP, part = (int)threadIdx.x / CAKE_WARP % CUT, g = lane / 4,
              t = lane % 4;
    const int n_block = width / CAKE_CUDA_K;
    const int begin = part_begin(n_block, part, CUT), end_block = part_begin(n_block, part + 1, CUT);

    /* in place of outputs and rows beyond the last one, the last one is computed again, and not written */
    const uint16_t *upper = w + (int64_t)min(first_out + g, n_out - 1) * width + 8 * t;
    const uint16_t *lower = w + (int64_t)min(first_out + g + 8, n_out - 1) * width + 8 * t;
    const uint16_t *row[TILES];
    for (int i = 0; i < TILES; i++) {
        row[i] = x + (int64_t)min(first_row + ROWS * i + g, n_row - 1) * width + 8 * t;
        for (int j = 0; j < 4; j++)
            sum[i][j] = 0;
    }

    uint4 a[2][AHEAD], b[2][AHEAD]; /* while one set is used, the other one is loaded */
    auto bring = [&](int set, int block) {
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            if (block + i < end_block) {
                a[set][i] = *(const uint4 *)(upper + (int64_t)(block + i) * CAKE_CUDA_K);
                b[set][i] = *(const uint4 *)(lower + (int64_t)(block + i) * CAKE_CUDA_K);
            }
    };
    bring(0, begin);
    await_before(); /* the rows */
    for (int block = begin; block < end_block; block += 2 * AHEAD)
#pragma unroll
        for (int set = 0; set < 2; set++) {
            const int here = block + set * AHEAD;
            bring(1 - set, here + AHEAD);
#pragma unroll
            for (int i = 0; i < AHEAD; i++)
                if (here + i < end_block) {
                    const uint4 u = a[set][i], l = b[set][i];
                    const uint32_t low[4] = {u.x, l.x, u.y, l.y}, high[4] = {u.z, l.z, u.w, l.w};
#pragma unroll
                    for (int tile = 0; tile < TILES; tile++) {
                        uint4 r = *(const uint4 *)(row[tile] + (int64_t)(here + i) * CAKE_CUDA_K);
                        const uint32_t first[2] = {r.x, r.y}, second[2] = {r.z, r.w};
                        multiply_tile<T>(sum[tile], low, first);
                        multiply_tile<T>(sum[tile], high, second);
                    }
                }
        }
}

/* A block: TILES tiles of rows, and group y of the outputs. */
template <typename T, int TILES, int CUT, typename END>
__device__ __forceinline__ void multiply_block(const END &end, factors w, int y, const uint16_t *x, int width,
                                               int n_row)
{
    enum { OF_EACH = block_of<CUT>::BANDS / END::MATRICES }; /* bands of one matrix after the other */
    const int band = (int)threadIdx.x / CAKE_WARP / CUT;
    float sum[TILES][4];
    sum_part<T, TILES, CUT>(sum, x, w.of(band / OF_EACH), (y * OF_EACH + band % OF_EACH) * COLUMNS,
                            (int)blockIdx.x * ROWS * TILES, end.n_out, width, n_row);
    finish<TILES, CUT>(end, sum, y, n_row);
}

/* grid: groups of rows, groups of outputs. */
template <typename T, int TILES, int CUT, typename END>
__global__ void __launch_bounds__(block_of<CUT>::THREADS, block_of<CUT>::AT_ONCE)
    multiply_few(END end, factors w, const uint16_t *x, int width, int n_row)
{
    let_next_begin();
    multiply_block<T, TILES, CUT>(end, w, (int)blockIdx.y, x, width, n_row);
}

/* Several products of the same rows. */
struct several {
    ending end[CAKE_PRODUCTS];
    const uint16_t *w[CAKE_PRODUCTS];
    int first[CAKE_PRODUCTS]; /* each product's first group of outputs; if there is none, beyond all groups */
};

/* grid: groups of rows; groups of outputs, of one product after the other. */
template <typename T, int TILES, int CUT>
__global__ void __launch_bounds__(block_of<CUT>::THREADS, block_of<CUT>::AT_ONCE)
    multiply_several(several all, const uint16_t *x, int width, int n_row)
{
    let_next_begin();
    const int y = (int)blockIdx.y;
    ending end = all.end[0];
    factors w = {all.w[0], all.w[0]};
    int first = 0;
#pragma unroll
    for (int i = 1; i < CAKE_PRODUCTS; i++)
        if (y >= all.first[i]) {
            end = all.end[i];
            w.first = all.w[i];
            first = all.first[i];
        }
    multiply_block<T, TILES, CUT>(end, w, y - first, x, width, n_row);
}

/* The int8 product: sums over a group of k are integers, and are scaled when they are added up. */
template <int TILES>
__global__ void __launch_bounds__(block_of<PARTS>::THREADS)
    multiply_int8(ending end, const char *w, const char *x, int width, size_t step_of_row, int n_row)
{
    let_next_begin();
    enum { STEP = 64 }; /* bytes of k that four lanes load together, which makes two tiles */
    const int lane = (int)threadIdx.x % CAKE_WARP, warp = (int)threadIdx.x / CAKE_WARP;
    const int part = warp % PARTS, band = warp / PARTS, g = lane / 4, t = lane % 4;
    const int first_out = ((int)blockIdx.y * block_of<PARTS>::BANDS + band) * COLUMNS,
              first_row = (int)blockIdx.x * ROWS * TILES;
    const int n_group = width / CAKE_I8_GROUP, last = part_begin(n_group, part + 1, PARTS);
    const char *upper = w + min(first_out + g, end.n_out - 1) * step_of_row;
    const char *lower = w + min(first_out + g + 8, end.n_out - 1) * step_of_row;
    float sum[TILES][4];
#pragma unroll
    for (int tile = 0; tile < TILES; tile++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            sum[tile][j] = 0;
    enum {
        EACH = CAKE_I8_GROUP / STEP,
        SETS = TILES > 2 ? 1 : 2
    }; /* sets of loads: a thread has no registers for more */
    uint4 a[SETS][EACH], b[SETS][EACH];
    float scale[SETS][2];
    auto bring = [&](int set, int group) {
        if (group >= last)
            return;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            a[set][i] = *(const uint4 *)(upper + group * CAKE_I8_GROUP + 16 * t + STEP * i);
            b[set][i] = *(const uint4 *)(lower + group * CAKE_I8_GROUP + 16 * t + STEP * i);
        }
        scale[set][0] = ((const float *)(upper + width))[group];
        scale[set][1] = ((const float *)(lower + width))[group];
    };
    const int begin = part_begin(n_group, part, PARTS);
#pragma unroll
    for (int set = 0; set < SETS; set++)
        bring(set, begin + set);
    await_before(); /* the rows */
    for (int from = begin; from < last; from += SETS)
#pragma unroll
        for (int set = 0; set < SETS; set++) {
            const int group = from + set, k = group * CAKE_I8_GROUP + 16 * t;
            if (group >= last)
                break;
#pragma unroll
            for (int tile = 0; tile < TILES; tile++) {
                const int row = first_row + ROWS * tile;
                int32_t whole[4] = {0, 0, 0, 0};
#pragma unroll
                for (int i = 0; i < EACH; i++) {
                    uint4 r = *(const uint4 *)(x + min(row + g, n_row - 1) * step_of_row + k + STEP * i);
                    const uint32_t low[4] = {a[set][i].x, b[set][i].x, a[set][i].y, b[set][i].y},
                                   high[4] = {a[set][i].z, b[set][i].z, a[set][i].w, b[set][i].w};
                    const uint32_t first[2] = {r.x, r.y}, second[2] = {r.z, r.w};
                    multiply_bytes(whole, low, first);
                    multiply_bytes(whole, high, second);
                }
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    const char *token = x + min(row + 2 * t + j % 2, n_row - 1) * step_of_row;
                    sum[tile][j] =
                        fused((float)whole[j], ((const float *)(token + width))[group] * scale[set][j / 2],
                              sum[tile][j]);
                }
            }
            bring(set, group + SETS);
        }
    finish<TILES, PARTS>(end, sum, (int)blockIdx.y, n_row);
}

/* Tile products lack float32 precision: for float32 a warp computes one output, with lanes along k. grid:
 * outputs, groups of rows. */
__global__ void multiply_f32(ending end, const float *w, const float *x, int width, int n_row)
{
    begin_kernel();
    const int lane = (int)threadIdx.x % CAKE_WARP;
    const int column = (int)(blockIdx.x * (blockDim.x / CAKE_WARP) + threadIdx.x / CAKE_WARP);
    const int first_row = (int)blockIdx.y * ROWS, rows = min(n_row - first_row, (int)ROWS);
    if (column >= end.n_out)
        return; /* the whole warp */
    float sum[ROWS] = {0};
    for (int k = lane; k < width; k += CAKE_WARP) {
        float weight = w[(int64_t)column * width + k];
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            if (i < rows)
                sum[i] = fused(x[(int64_t)(first_row + i) * width + k], weight, sum[i]);
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        float total = warp_sum(sum[i]);
        if (lane == 0 && i < rows)
            end.put_one(total, first_row + i, column);
    }
}

template <typename T, int TILES, int CUT, typename END>
static void launch_few(const END &end, factors w, const uint16_t *x, int width, int n_row)
{
    enum { OUTPUTS = block_of<CUT>::BANDS * COLUMNS / END::MATRICES };
    CAKE_LAUNCH((multiply_few<T, TILES, CUT, END>),
                dim3(groups(n_row, ROWS * TILES), groups(end.columns(), OUTPUTS)),
                dim3(block_of<CUT>::THREADS), 0, end, w, x, width, n_row);
}

/* Matrices of 16 bits, with k cut into CUT parts. */
template <typename T, int CUT, typename END>
static void multiply_cut(const END &end, factors w, const uint16_t *x, int width, int n_row, void *parts)
{
    if (n_row <= ROWS)
        launch_few<T, 1, CUT>(end, w, x, width, n_row);
    else if (n_row <= CAKE_CUDA_FEW)
        launch_few<T, 2, CUT>(end, w, x, width, n_row);
    else
        multiply_rows<T>(end, w, x, width, n_row, CUT, (float *)parts);
}

template <typename T, typename END>
static void multiply_16(const END &end, const cake_weight *w, const cake_weight *second, const void *x,
                        int n_row, void *parts)
{
    const int width = cake_cuda_width(w->dtype, w->n_in);
    const factors both = {(const uint16_t *)w->data, (const uint16_t *)second->data};
    if (cake_cuda_parts(w) > 1)
        multiply_cut<T, PARTS>(end, both, (const uint16_t *)x, width, n_row, parts);
    else
        multiply_cut<T, 1>(end, both, (const uint16_t *)x, width, n_row, parts);
}

template <int TILES>
static void launch_int8(const ending &end, const cake_weight *w, const void *x, int n_row)
{
    CAKE_LAUNCH(multiply_int8<TILES>,
                dim3(groups(n_row, ROWS * TILES), groups(w->n_out, block_of<PARTS>::BANDS * COLUMNS)),
                dim3(block_of<PARTS>::THREADS), 0, end, (const char *)w->data, (const char *)x,
                cake_cuda_width(CAKE_I8, w->n_in), cake_cuda_step(CAKE_I8, w->n_in), n_row);
}

static void multiply_i8(const ending &end, const cake_weight *w, const void *x, int n_row)
{
    if (n_row <= ROWS)
        launch_int8<1>(end, w, x, n_row);
    else if (n_row <= 2 * ROWS)
        launch_int8<2>(end, w, x, n_row);
    else if (n_row <= 4 * ROWS)
        launch_int8<4>(end, w, x, n_row);
    else
        launch_int8<8>(end, w, x, n_row);
}

static void multiply(const ending &end, const cake_weight *w, const void *x, int n_row, void *parts)
{
    if (w->dtype == CAKE_F32)
        CAKE_LAUNCH(multiply_f32, dim3(groups(w->n_out, 8), groups(n_row, ROWS)), dim3(8 * CAKE_WARP), 0, end,
                    (const float *)w->data, (const float *)x, cake_cuda_width(w->dtype, w->n_in), n_row);
    else if (w->dtype == CAKE_I8)
        multiply_i8(end, w, x, n_row);
    else if (w->dtype == CAKE_F16)
        multiply_16<cake_f16>(end, w, w, x, n_row, parts);
    else
        multiply_16<cake_bf16>(end, w, w, x, n_row, parts);
}

void cake_cuda_linear(float *out, const void *x, const cake_weight *w, const float *bias,
                      const float *residual, int n_row, void *parts)
{
    ending end = {out, w->n_out, bias, residual, {}};
    multiply(end, w, x, n_row, parts);
}

template <typename T, int CUT>
static void launch_several(const several &all, int blocks, const void *x, int width, int n_row)
{
    const dim3 grid(1, (unsigned)blocks), block(block_of<CUT>::THREADS);
    const uint16_t *rows = (const uint16_t *)x;
    if (n_row <= ROWS)
        CAKE_LAUNCH((multiply_several<T, 1, CUT>), grid, block, 0, all, rows, width, n_row);
    else
        CAKE_LAUNCH((multiply_several<T, 2, CUT>), grid, block, 0, all, rows, width, n_row);
}

void cake_cuda_linear_multi(const cake_product *product, int n, const void *x, int n_row)
{
    const cake_weight *w = product->w;
    const int width = cake_cuda_width(w->dtype, w->n_in);
    const bool cut = cake_cuda_parts(w) > 1;
    const int outputs = (cut ? (int)block_of<PARTS>::BANDS : (int)block_of<1>::BANDS) * COLUMNS;
    several all = {};
    int blocks = 0;
    for (int i = 0; i < CAKE_PRODUCTS; i++) {
        all.first[i] = i < n ? blocks : INT32_MAX;
        if (i < n) {
            const cake_weight *one = product[i].w;
            all.end[i] = {product[i].out, one->n_out, product[i].bias, NULL, {}};
            all.w[i] = (const uint16_t *)one->data;
            blocks += (int)groups(one->n_out, outputs);
        }
    }
    if (w->dtype == CAKE_F16 && cut)
        launch_several<cake_f16, PARTS>(all, blocks, x, width, n_row);
    else if (w->dtype == CAKE_F16)
        launch_several<cake_f16, 1>(all, blocks, x, width, n_row);
    else if (cut)
        launch_several<cake_bf16, PARTS>(all, blocks, x, width, n_row);
    else
        launch_several<cake_bf16, 1>(all, blocks, x, width, n_row);
}

size_t cake_cuda_leaders(int n_out)
{
    return (size_t)groups_of_scores(n_out) * sizeof(cake_ranked);
}

void cake_cuda_scores(float *out, cake_topk *best, const void *x, const cake_weight *w, bool all, float cap,
                      int n_row, void *leaders, void *parts)
{
    leading to = {(cake_ranked *)leaders, best, cap, all};
    ending end = {out, w->n_out, NULL, NULL, {}};
    if (w->dtype != CAKE_F32)
        end.lead = to;
    multiply(end, w, x, n_row, parts);
    if (w->dtype == CAKE_F32)
        cake_cuda_lead(out, to, w->n_out, n_row);
    cake_cuda_topk(to, out, w->n_out, n_row);
}

template <typename T>
static void pass(void *to, const void *x, const cake_weight *gate, const float *gate_bias,
                 const cake_weight *up, const float *up_bias, int act, int n_row, void *parts)
{
    pairing<T> end = {(T *)to,   gate->n_out, cake_cuda_width(gate->dtype, gate->n_out),
                      gate_bias, up_bias,     act};
    multiply_16<T>(end, gate, up, x, n_row, parts);
}

void cake_cuda_mlp_gate_up(void *to, const void *x, const cake_weight *gate, const float *gate_bias,
                           const cake_weight *up, const float *up_bias, int act, int n_row, void *parts)
{
    if (gate->dtype == CAKE_F16)
        pass<cake_f16>(to, x, gate, gate_bias, up, up_bias, act, n_row, parts);
    else
        pass<cake_bf16>(to, x, gate, gate_bias, up, up_bias, act, n_row, parts);
}
