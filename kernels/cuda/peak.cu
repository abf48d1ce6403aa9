/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a piece of memory, a number of steps. Out: what it takes to read all of it, and to multiply so many
 * tiles: the roofline that other kernels are compared with. Results are written only to keep the compiler
 * from dropping the work.
 */
#include "kernels/cuda/layout.h"
#include "kernels/cuda/mma.h"

enum { THREADS = 256, BLOCKS = 2048, TILES = 8, READS = 4 };

/* Reads all of it, READS loads at a time. sum [BLOCKS * THREADS / CAKE_WARP] */
__global__ void read_all(uint32_t *sum, const uint4 *from, int64_t n)
{
    begin_kernel();
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    uint32_t all = 0;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += READS * step) {
        uint4 v[READS];
#pragma unroll
        for (int j = 0; j < READS; j++)
            v[j] = from[i + j * step < n ? i + j * step : i];
#pragma unroll
        for (int j = 0; j < READS; j++)
            if (i + j * step < n)
                all ^= v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
    }
    for (int flip = CAKE_WARP / 2; flip; flip /= 2)
        all ^= __shfl_xor_sync(CAKE_ALL, all, flip);
    if (threadIdx.x % CAKE_WARP == 0)
        sum[(blockIdx.x * blockDim.x + threadIdx.x) / CAKE_WARP] = all;
}

/* Each step of a warp multiplies TILES pairs of tiles of ones. sum [BLOCKS * THREADS / CAKE_WARP] */
__global__ void multiply_all(float *sum, int steps)
{
    begin_kernel();
    const uint32_t one = pair_of<cake_bf16>(1, 1), a[4] = {one, one, one, one}, b[2] = {one, one};
    float c[TILES][4];
    for (int i = 0; i < TILES; i++)
        for (int j = 0; j < 4; j++)
            c[i][j] = 0;
    for (int step = 0; step < steps; step++)
#pragma unroll
        for (int i = 0; i < TILES; i++)
            multiply_tile<cake_bf16>(c[i], a, b);
    float all = 0;
    for (int i = 0; i < TILES; i++)
        for (int j = 0; j < 4; j++)
            all += c[i][j];
    if (threadIdx.x % CAKE_WARP == 0)
        sum[(blockIdx.x * blockDim.x + threadIdx.x) / CAKE_WARP] = all;
}

void cake_cuda_read_all(uint32_t *sum, const void *from, size_t bytes)
{
    CAKE_LAUNCH(read_all, dim3(BLOCKS), dim3(THREADS), 0, sum, (const uint4 *)from,
                (int64_t)(bytes / sizeof(uint4)));
}

double cake_cuda_multiply_all(float *sum, int steps)
{
    CAKE_LAUNCH(multiply_all, dim3(BLOCKS), dim3(THREADS), 0, sum, steps);
    return 2.0 * 16 * 8 * 16 * TILES * steps * BLOCKS * (THREADS / CAKE_WARP);
}
