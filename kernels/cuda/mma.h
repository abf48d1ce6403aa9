/* SPDX-License-Identifier: Apache-2.0
 *
 * The product of two small tiles by a warp, the only access to tensor cores: c [16, 8] += a [16, 16] b [16,
 * 8], of BF16 or F16 in float32. Lanes hold the elements as in PTX's mma.m16n8k16 (PTX ISA, "Matrix fragments
 * for mma.m16n8k16"), with g = lane / 4 and t = lane % 4, and two neighbours in k in each word:
 *   a[0]: row g, k 2t and 2t + 1;  a[1]: row g + 8, the same;  a[2], a[3]: as these with k + 8
 *   b[0]: k 2t and 2t + 1, column g;  b[1]: the same with k + 8
 *   c[0], c[1]: row g, columns 2t and 2t + 1;  c[2], c[3]: row g + 8, the same
 * In int8 a tile is 32 deep (mma.m16n8k32), sums are int32, and a word holds four neighbours: a[0]: row g, k
 * 4t to 4t + 3; a[1]: row g + 8; a[2], a[3]: with k + 16; b likewise.
 * A GPU without the instruction (before capability 8.0), and a CPU in tests, sum the products one by one, k
 * upwards.
 */
#ifndef CAKE_KERNELS_CUDA_MMA_H
#define CAKE_KERNELS_CUDA_MMA_H

#include "kernels/cuda/device_util.h"

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800

#define CAKE_MMA(type)                                                                                       \
    asm("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 "                                       \
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                    \
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                                     \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

template <typename T>
__device__ __forceinline__ void multiply_tile(float c[4], const uint32_t a[4], const uint32_t b[2]);

template <>
__device__ __forceinline__ void multiply_tile<cake_bf16>(float c[4], const uint32_t a[4], const uint32_t b[2])
{
    CAKE_MMA("bf16");
}

template <>
__device__ __forceinline__ void multiply_tile<cake_f16>(float c[4], const uint32_t a[4], const uint32_t b[2])
{
    CAKE_MMA("f16");
}

__device__ __forceinline__ void multiply_bytes(int32_t c[4], const uint32_t a[4], const uint32_t b[2])
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#else

/* The words of a tile, which lanes read from each other. */
struct tile_words {
#ifdef __CUDACC__
    uint32_t word[6];
    __device__ __forceinline__ uint32_t of(int lane, int i) const
    {
        return __shfl_sync(CAKE_ALL, word[i], lane);
    }
#else
    uint32_t of(int lane, int i) const
    {
        return executor_word(lane, i);
    }
#endif
};

__device__ __forceinline__ tile_words exchange(const uint32_t a[4], const uint32_t b[2])
{
    const uint32_t word[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
    tile_words words;
#ifdef __CUDACC__
    for (int i = 0; i < 6; i++)
        words.word[i] = word[i];
#else
    executor_give(CAKE_ALL, word, 6);
#endif
    return words;
}

/* Adds to the four elements of c; each is the sum of what `add` makes of the words that meet there, k
 * upwards. */
template <typename C, typename add>
__device__ __forceinline__ void sum_tile(C c[4], const uint32_t a[4], const uint32_t b[2], add pair)
{
    const tile_words words = exchange(a, b);
    const int lane = (int)threadIdx.x % CAKE_WARP, t = lane % 4;
    for (int half = 0; half < 2; half++)
        for (int u = 0; u < 4; u++) { /* the k that lanes 4 g + u hold, for all g */
            uint32_t upper = words.of(lane - t + u, 2 * half), lower = words.of(lane - t + u, 2 * half + 1);
            uint32_t left = words.of(8 * t + u, 4 + half), right = words.of(8 * t + 4 + u, 4 + half);
            pair(c[0], upper, left);
            pair(c[1], upper, right);
            pair(c[2], lower, left);
            pair(c[3], lower, right);
        }
}

template <typename T> struct add_pair {
    __device__ __forceinline__ void operator()(float &sum, uint32_t a, uint32_t b) const
    {
        sum += low_of<T>(a) * low_of<T>(b);
        sum += high_of<T>(a) * high_of<T>(b);
    }
};

struct add_bytes {
    __device__ __forceinline__ void operator()(int32_t &sum, uint32_t a, uint32_t b) const
    {
        for (int i = 0; i < 32; i += 8)
            sum += (int32_t)(int8_t)(a >> i) * (int32_t)(int8_t)(b >> i);
    }
};

template <typename T>
__device__ __noinline__ void multiply_tile(float c[4], const uint32_t a[4], const uint32_t b[2])
{
    sum_tile(c, a, b, add_pair<T>());
}

static inline __device__ __noinline__ void multiply_bytes(int32_t c[4], const uint32_t a[4],
                                                          const uint32_t b[2])
{
    sum_tile(c, a, b, add_bytes());
}

#endif
#endif
