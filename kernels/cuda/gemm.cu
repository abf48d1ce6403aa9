/* SPDX-License-Identifier: Apache-2.0
 *
 * In: rows that input_pack has packed, more than a few, and a matrix or two. Out: their product, with the
 * bits of gemv.cu for a single row: the same parts of k, each summed upwards 16 at a time.
 *
 * With few rows a GPU waits for weights, with many for its caches: here more outputs share what a block reads
 * of rows. A block has 128 outputs of up to 256 rows; both come through shared memory, 32 elements of k at a
 * time, some stages ahead. Blocks with the same outputs and other rows are consecutive, so that they find
 * weights in the cache. Where k is cut, a block does one part of it, and another kernel adds the parts.
 */
#include "kernels/cuda/cp_async.h"
#include "kernels/cuda/epilogue.h"
#include "kernels/cuda/layout.h"
#include "kernels/cuda/mma.h"

enum {
    WIDE = 128, /* outputs of a block: of BESIDE adjacent warps */
    BESIDE = 4,
    DEEP = 2,                         /* tiles of 16 outputs of a warp */
    THREADS = 2 * BESIDE * CAKE_WARP, /* two such rows of warps, which have different rows of x */
    WORDS = 4,                        /* 16-byte words of CAKE_CUDA_K elements of a line */
    AT_ONCE = 64                      /* rows whose sums go through shared memory together */
};

/* Adds CAKE_CUDA_K elements of k to a warp's sums. Lines are first outputs, then rows. */
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

/* Brings the sums of a block's warps, for its rows [first, first + AT_ONCE), to a tile in shared memory. */
template <int TILES>
__device__ __forceinline__ void spread(float (*tile)[WIDE + 4], const float sum[DEEP][TILES][4], int first)
{
    const int lane = (int)threadIdx.x % CAKE_WARP, warp = (int)threadIdx.x / CAKE_WARP, g = lane / 4,
              t = lane % 4;
#pragma unroll
    for (int n = 0; n < TILES; n++) {
        const int row = (warp / BESIDE * TILES + n) * ROWS - first;
        if (row < 0 || row >= AT_ONCE)
            continue;
#pragma unroll
        for (int i = 0; i < DEEP; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                tile[row + 2 * t + j % 2][(warp % BESIDE * DEEP + i) * 16 + g + j / 2 * 8] = sum[i][n][j];
    }
}

/* The shape of a block: rows, and stages of shared memory. */
template <int TILES> struct block_of {
    enum {
        HIGH = 2 * TILES * ROWS,
        LINES = WIDE + HIGH,
        STAGES = TILES == 8 ? 3 : 4,
        EACH = (LINES * WORDS + THREADS - 1) / THREADS, /* words that a thread copies for each stage */
        BYTES = STAGES * LINES * WORDS * (int)sizeof(uint4)
    };
    static_assert(BYTES >= AT_ONCE * (WIDE + 4) * (int)sizeof(float), "sums change hands there, too");
};

/* Multiplies rows [first, n_row). grid: groups of rows, groups of outputs, parts of k. parts: [gridDim.z,
 * n_row - first, gridDim.y, WIDE], unless there is only one part. */
template <typename T, int TILES, typename END>
__global__ void __launch_bounds__(THREADS, TILES > 8 ? 1 : 2)
    multiply_many(END end, factors w, const uint16_t *x, int width, int first, int n_row, float *parts)
{
    enum {
        HIGH = block_of<TILES>::HIGH,
        LINES = block_of<TILES>::LINES,
        STAGES = block_of<TILES>::STAGES,
        EACH = block_of<TILES>::EACH,
        OUTPUTS = WIDE / END::MATRICES
    };
    CAKE_SHARED(uint4, memory);
    let_next_begin();
    uint4(*stage)[LINES][WORDS] = (uint4(*)[LINES][WORDS])memory;
    const int n_block = width / CAKE_CUDA_K, first_row = first + (int)blockIdx.x * HIGH,
              first_out = (int)blockIdx.y * OUTPUTS;
    const int begin = part_begin(n_block, (int)blockIdx.z, (int)gridDim.z),
              n = part_begin(n_block, (int)blockIdx.z + 1, (int)gridDim.z) - begin;

    /* in place of outputs and rows beyond the last one, the last one is computed again, and not written */
    enum { AT_A_TIME = THREADS / WORDS }; /* lines */
    uint32_t from[EACH]; /* places in the matrix, or in x, in words: both have less than 2^32 */
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int line = (int)threadIdx.x / WORDS + i * AT_A_TIME;
        const int at = i * AT_A_TIME < WIDE ? min(first_out + line % OUTPUTS, end.n_out - 1)
                                            : min(first_row + line - WIDE, n_row - 1);
        from[i] = (uint32_t)at * (uint32_t)(width / 8) + (uint32_t)(begin * WORDS) + threadIdx.x % WORDS;
    }
    /* Copies words [from_word, to_word) of a block of k to a stage. Stages are counted up, since a remainder
     * would take registers. */
    auto bring = [&](int to, int block, int from_word, int to_word) {
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int at = (int)threadIdx.x + i * THREADS;
            const uint16_t *matrix = i * AT_A_TIME < WIDE ? w.of(i * AT_A_TIME / OUTPUTS) : x;
            if (block < n && at >= from_word && at < to_word)
                copy_ahead(&stage[to][at / WORDS][at % WORDS],
                           (const uint4 *)matrix + from[i] + block * WORDS);
        }
    };

    for (int i = 0; i < STAGES - 1; i++)
        bring(i, i, 0, WIDE * WORDS);
    await_before(); /* the rows */
    for (int i = 0; i < STAGES - 1; i++) {
        bring(i, i, WIDE * WORDS, LINES * WORDS);
        end_copies();
    }
    float sum[DEEP][TILES][4] = {};
    for (int block = 0, here = 0, to = STAGES - 1; block < n; block++) {
        await_copies<STAGES - 2>();
        __syncthreads(); /* all see the copies, and no warp reads what is overwritten next */
        bring(to, block + STAGES - 1, 0, LINES * WORDS);
        end_copies();
        multiply_lines<T, TILES>(sum, stage[here]);
        to = here;
        here = here == STAGES - 1 ? 0 : here + 1;
    }

    float(*tile)[WIDE + 4] =
        (float(*)[WIDE + 4]) memory; /* 4 columns more, so that lanes meet different banks */
    for (int some = 0; some < HIGH; some += AT_ONCE) {
        __syncthreads();
        spread<TILES>(tile, sum, some);
        __syncthreads();
        for (int i = (int)threadIdx.x; i < min((int)HIGH, (int)AT_ONCE) * OUTPUTS; i += THREADS) {
            const int column = i % OUTPUTS, token = first_row + some + i / OUTPUTS;
            float total[END::MATRICES];
            if (token >= n_row)
                break;
#pragma unroll
            for (int m = 0; m < END::MATRICES; m++) {
                total[m] = tile[i / OUTPUTS][m * OUTPUTS + column];
                if (gridDim.z > 1)
                    parts[(((int64_t)blockIdx.z * (n_row - first) + token - first) * gridDim.y + blockIdx.y) *
                              WIDE +
                          m * OUTPUTS + column] = total[m];
            }
            if (gridDim.z == 1)
                end.put(total, token, first_out + column);
        }
    }
}

/* Adds the parts in order, for rows from `first` on. grid: rows, groups of outputs; one thread per output. */
template <typename END> __global__ void add_parts(END end, const float *parts, int first)
{
    begin_kernel();
    const int column = (int)threadIdx.x, outputs = (int)blockDim.x, row = (int)blockIdx.x;
    float sum[END::MATRICES];
#pragma unroll
    for (int m = 0; m < END::MATRICES; m++)
#pragma unroll
        for (int part = 0; part < CAKE_CUDA_PARTS; part++) {
            float one = parts[(((int64_t)part * gridDim.x + row) * gridDim.y + blockIdx.y) * WIDE +
                              m * outputs + column];
            sum[m] = part ? sum[m] + one : one;
        }
    end.put(sum, first + row, (int)blockIdx.y * outputs + column);
}

/* Arguments common to all launches of a product. */
template <typename END> struct product {
    const END &end;
    factors w;
    const uint16_t *x;
    int width, n_part;
    float *parts;
};

/* Launches the product of rows [first, n_row). */
template <typename T, int TILES, typename END> static void launch(const product<END> &p, int first, int n_row)
{
    enum { OUTPUTS = WIDE / END::MATRICES, BYTES = block_of<TILES>::BYTES };
    const unsigned outputs = groups(p.end.columns(), OUTPUTS);
    CAKE_LAUNCH((multiply_many<T, TILES, END>),
                dim3(groups(n_row - first, block_of<TILES>::HIGH), outputs, (unsigned)p.n_part),
                dim3(THREADS), (size_t)BYTES, p.end, p.w, p.x, p.width, first, n_row, p.parts);
    if (p.n_part > 1)
        CAKE_LAUNCH(add_parts<END>, dim3((unsigned)(n_row - first), outputs), dim3(OUTPUTS), 0, p.end,
                    (const float *)p.parts, first);
}

/* Blocks of 256 rows read the least; they are taken if the GPU gives a block the memory and the last one
 * would be more than half full. */
template <typename T, typename END> static void launch_some(const product<END> &p, int first, int n_row)
{
    const int n = n_row - first;
    if (n <= 32)
        launch<T, 2>(p, first, n_row);
    else if (n <= 64)
        launch<T, 4>(p, first, n_row);
    else if (groups(n, 128) == 2 * groups(n, 256) && block_of<16>::BYTES <= cake_cuda_block_memory())
        launch<T, 16>(p, first, n_row);
    else
        launch<T, 8>(p, first, n_row);
}

template <typename T, typename END>
void multiply_rows(const END &end, factors w, const uint16_t *x, int width, int n_row, int n_part,
                   float *parts)
{
    const product<END> p = {end, w, x, width, n_part, parts};
    const int most = n_part > 1 ? CAKE_CUDA_PARTS_ROWS : n_row;
    for (int first = 0; first < n_row; first += most)
        launch_some<T>(p, first, min(first + most, n_row));
}

#define CAKE_MANY(type, end)                                                                                 \
    template void multiply_rows<type, end>(const end &, factors, const uint16_t *, int, int, int, float *)
CAKE_MANY(cake_bf16, ending);
CAKE_MANY(cake_f16, ending);
CAKE_MANY(cake_bf16, pairing<cake_bf16>);
CAKE_MANY(cake_f16, pairing<cake_f16>);
