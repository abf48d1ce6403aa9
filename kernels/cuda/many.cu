/* SPDX-License-Identifier: Apache-2.0
 *
 * In: rows that input_pack has packed, more than a few, and a matrix or two. Out: their product, to the bit what linear.cu
 * makes of a row alone: the same four parts of k, each summed upwards 16 at a time.
 *
 * With few rows a GPU waits for weights, with many for its caches: what a block reads of rows is shared by more outputs here.
 * A block has 128 outputs of up to 128 rows; both come through shared memory, 32 elements of k at a time, some stages
 * ahead. Blocks of the same outputs and other rows follow each other, so that they find weights in the cache. Where there
 * are not blocks enough for a GPU, each does one part of k, and another kernel adds them.
 */
#include "kernels/cuda/ahead.h"
#include "kernels/cuda/layout.h"
#include "kernels/cuda/mma.h"
#include "kernels/cuda/sums.h"

enum {
    WIDE = 128, /* outputs of a block, four warps side by side: */
    BESIDE = 4,
    DEEP = 2,                         /* tiles of 16 outputs of each */
    THREADS = 2 * BESIDE * CAKE_WARP, /* and twice the rows of one */
    WORDS = 4,                        /* of 16 bytes, in CAKE_CUDA_K elements of a line */
    AT_ONCE = 64                      /* rows whose sums change hands together */
};

/* What a warp adds to its sums: CAKE_CUDA_K elements of k. Lines are outputs and, behind them, rows. */
template <typename T, int TILES>
__device__ __forceinline__ void multiply_lines(float sum[DEEP][TILES][4], const uint4 (*line)[WORDS])
{
    const int lane = (int)threadIdx.x % CAKE_WARP, warp = (int)threadIdx.x / CAKE_WARP, g = lane / 4,
              t = lane % 4;
    const uint4(*output)[WORDS] = line + warp % BESIDE * DEEP * 16 + g;
    const uint4(*row)[WORDS] = line + WIDE + warp / BESIDE * TILES * ROWS + g;
    uint32_t low[DEEP][4], high[DEEP][4];
#pragma unroll
    for (int i = 0; i < DEEP; i++) {
        const uint4 a = output[16 * i][t], b = output[16 * i + 8][t];
        low[i][0] = a.x, low[i][1] = b.x, low[i][2] = a.y, low[i][3] = b.y;
        high[i][0] = a.z, high[i][1] = b.z, high[i][2] = a.w, high[i][3] = b.w;
    }
#pragma unroll
    for (int tile = 0; tile < TILES; tile++) {
        const uint4 r = row[ROWS * tile][t];
        const uint32_t first[2] = {r.x, r.y}, second[2] = {r.z, r.w};
#pragma unroll
        for (int i = 0; i < DEEP; i++) {
            multiply_tile<T>(sum[i][tile], low[i], first);
            multiply_tile<T>(sum[i][tile], high[i], second);
        }
    }
}

/* The sums of a block's warps, for rows [first, first + AT_ONCE) of the block's, to a tile in shared memory. */
template <int TILES>
__device__ __forceinline__ void spread(float (*tile)[WIDE + 4], const float sum[DEEP][TILES][4], int first)
{
    const int lane = (int)threadIdx.x % CAKE_WARP, warp = (int)threadIdx.x / CAKE_WARP, g = lane / 4,
              t = lane % 4;
    const int row = warp / BESIDE * TILES * ROWS - first;
    if (row < 0 || row >= AT_ONCE)
        return;
#pragma unroll
    for (int i = 0; i < DEEP; i++)
#pragma unroll
        for (int n = 0; n < TILES; n++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                tile[row + n * ROWS + 2 * t + j % 2][(warp % BESIDE * DEEP + i) * 16 + g + j / 2 * 8] =
                    sum[i][n][j];
}

/* grid: groups of rows, groups of outputs, parts of k or 1. parts [PARTS, n_tok, gridDim.y, WIDE]. */
template <typename T, int TILES, typename END>
__global__ void __launch_bounds__(THREADS)
    multiply_many(END end, factors w, const uint16_t *x, int width, int n_tok, float *parts)
{
    let_next_begin();
    enum {
        HIGH = 2 * TILES * ROWS, /* rows of the block */
        STAGES = TILES == 8 ? 3 : 4,
        LINES = WIDE + HIGH,
        EACH = (LINES * WORDS + THREADS - 1) / THREADS, /* words that a thread brings */
        OUTPUTS = WIDE / END::MATRICES
    };
    __shared__ uint4 stage[STAGES][LINES][WORDS];
    const int n_block = width / CAKE_CUDA_K, first_row = (int)blockIdx.x * HIGH,
              first_out = (int)blockIdx.y * OUTPUTS;
    const int first_part = gridDim.z == 1 ? 0 : (int)blockIdx.z,
              end_part = gridDim.z == 1 ? (int)PARTS : first_part + 1;
    const int begin = part_begin(n_block, first_part), n = part_begin(n_block, end_part) - begin;

    /* outputs and rows beyond the last one are computed from the last one, and not written */
    const uint4 *from[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int line = ((int)threadIdx.x + i * THREADS) / WORDS, word = (int)threadIdx.x % WORDS;
        const uint16_t *matrix =
            line < WIDE
                ? w.of(line / OUTPUTS) + (int64_t)min(first_out + line % OUTPUTS, end.n_out - 1) * width
                : x + (int64_t)min(first_row + line - WIDE, n_tok - 1) * width;
        from[i] = (const uint4 *)(matrix + (int64_t)begin * CAKE_CUDA_K) + word;
    }
    auto bring = [&](int block, int first,
                     int end) { /* words [first, end) of a stage */
#pragma unroll
                                for (int i = 0; i < EACH; i++) {
                                    const int at = (int)threadIdx.x + i * THREADS;
                                    if (block < n && at >= first && at < end)
                                        copy_ahead(&stage[block % STAGES][at / WORDS][at % WORDS],
                                                   from[i] + (int64_t)block * WORDS);
                                }
    };

    float total[DEEP][TILES][4];
    for (int i = 0; i < STAGES - 1; i++)
        bring(i, 0, WIDE * WORDS);
    await_before(); /* the rows */
    for (int i = 0; i < STAGES - 1; i++) {
        bring(i, WIDE * WORDS, LINES * WORDS);
        end_copies();
    }
    for (int part = first_part, block = 0; part < end_part; part++) {
        const int end_block = part_begin(n_block, part + 1) - begin;
        float sum[DEEP][TILES][4] = {};
        for (; block < end_block; block++) {
            await_copies<STAGES - 2>();
            __syncthreads(); /* all have what they brought, and nobody reads what is brought next */
            bring(block + STAGES - 1, 0, LINES * WORDS);
            end_copies();
            multiply_lines<T, TILES>(sum, stage[block % STAGES]);
        }
#pragma unroll
        for (int i = 0; i < DEEP * TILES * 4; i++) {
            float &all = total[i / (TILES * 4)][i / 4 % TILES][i % 4],
                  of_part = sum[i / (TILES * 4)][i / 4 % TILES][i % 4];
            all = part == first_part ? of_part : all + of_part;
        }
    }

    float(*tile)[WIDE + 4] = (float(*)[WIDE + 4]) stage; /* 4 more: lanes meet different banks */
    for (int first = 0; first < HIGH; first += AT_ONCE) {
        __syncthreads();
        spread<TILES>(tile, total, first);
        __syncthreads();
        for (int i = (int)threadIdx.x; i < min((int)HIGH, (int)AT_ONCE) * OUTPUTS; i += THREADS) {
            const int column = i % OUTPUTS, token = first_row + first + i / OUTPUTS;
            float sum[END::MATRICES];
            if (token >= n_tok)
                break;
#pragma unroll
            for (int m = 0; m < END::MATRICES; m++) {
                sum[m] = tile[i / OUTPUTS][m * OUTPUTS + column];
                if (gridDim.z > 1)
                    parts[(((int64_t)blockIdx.z * n_tok + token) * gridDim.y + blockIdx.y) * WIDE +
                          m * OUTPUTS + column] = sum[m];
            }
            if (gridDim.z == 1)
                end.put(sum, token, first_out + column);
        }
    }
}

/* Parts in order. grid: rows, groups of outputs; a thread an output. */
template <typename END> __global__ void add_parts(END end, const float *parts, int n_tok)
{
    begin_kernel();
    const int column = (int)threadIdx.x, outputs = (int)blockDim.x, token = (int)blockIdx.x;
    float sum[END::MATRICES];
#pragma unroll
    for (int m = 0; m < END::MATRICES; m++)
        for (int part = 0; part < PARTS; part++) {
            float one = parts[(((int64_t)part * n_tok + token) * gridDim.y + blockIdx.y) * WIDE +
                              m * outputs + column];
            sum[m] = part ? sum[m] + one : one;
        }
    end.put(sum, token, (int)blockIdx.y * outputs + column);
}

template <typename T, int TILES, typename END>
static void launch(const END &end, factors w, const uint16_t *x, int width, int n_tok, float *parts)
{
    enum { OUTPUTS = WIDE / END::MATRICES };
    const unsigned rows = groups(n_tok, 2 * TILES * ROWS), outputs = groups(end.columns(), OUTPUTS);
    const bool split = parts && rows * outputs < CAKE_CUDA_BLOCKS;
    CAKE_LAUNCH((multiply_many<T, TILES, END>), dim3(rows, outputs, split ? PARTS : 1), dim3(THREADS), 0, end,
                w, x, width, n_tok, parts);
    if (split)
        CAKE_LAUNCH(add_parts<END>, dim3((unsigned)n_tok, outputs), dim3(OUTPUTS), 0, end,
                    (const float *)parts, n_tok);
}

template <typename T, typename END>
void multiply_rows(const END &end, factors w, const uint16_t *x, int width, int n_tok, float *parts)
{
    if (n_tok <= 32)
        launch<T, 2>(end, w, x, width, n_tok, parts);
    else if (n_tok <= 64)
        launch<T, 4>(end, w, x, width, n_tok, parts);
    else
        launch<T, 8>(end, w, x, width, n_tok, parts);
}

#define CAKE_MANY(type, end)                                                                                 \
    template void multiply_rows<type, end>(const end &, factors, const uint16_t *, int, int, float *)
CAKE_MANY(cake_bf16, ending);
CAKE_MANY(cake_f16, ending);
CAKE_MANY(cake_bf16, pairing<cake_bf16>);
CAKE_MANY(cake_f16, pairing<cake_f16>);
