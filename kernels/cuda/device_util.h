/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by all GPU kernels: conversion of 16-bit elements, sums over a warp and a block, launches. nvcc
 * compiles them for GPUs; tests compile the same files for the CPU, with the CUDA functions of
 * tests/gpu/executor.h.
 */
#ifndef CAKE_KERNELS_CUDA_DEVICE_UTIL_H
#define CAKE_KERNELS_CUDA_DEVICE_UTIL_H

#include <float.h>
#include <stdint.h>

#ifdef __CUDACC__
#include <cuda_fp16.h>

extern "C" cudaStream_t cake_cuda_stream(void);
extern "C" bool cake_cuda_overlaps(void);
extern "C" void cake_cuda_launched(int error, const char *kernel); /* a cudaError_t */
extern "C" bool cake_cuda_has(const void *kernel);
/* Every kernel registers itself before main, so that all are loaded together (memory.h). */
template <auto KERNEL> const bool is_known = cake_cuda_has((const void *)KERNEL);

template <auto KERNEL, typename... P, typename... A>
static void launch_kernel(const char *name, dim3 grid, dim3 block, size_t shared, void (*kernel)(P...),
                          A... argument)
{
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t how = {};
    how.gridDim = grid;
    how.blockDim = block;
    how.dynamicSmemBytes = shared;
    how.stream = cake_cuda_stream();
    how.attrs = &early;
    how.numAttrs = cake_cuda_overlaps() ? 1 : 0;
    if (is_known<KERNEL>)
        cake_cuda_launched(cudaLaunchKernelEx(&how, kernel, (P)argument...), name);
}
#define CAKE_LAUNCH(kernel, grid, block, shared, ...)                                                        \
    launch_kernel<kernel>(#kernel, grid, block, shared, kernel, __VA_ARGS__)
/* The block's shared memory, whose size its launch gives: cake_cuda_block_memory() at most. */
#define CAKE_SHARED(type, name)                                                                              \
    extern __shared__ uint4 cake_shared[];                                                                   \
    type *name = (type *)cake_shared
#else
#include "kernels/tensor.h"
#endif

/* Bytes of shared memory that a block may have: 64 KB with capability 7.5, 99 KB or more from 8.0 on. */
extern "C" int cake_cuda_block_memory(void);

#define CAKE_WARP 32
#define CAKE_ALL  0xffffffffu /* a mask of all lanes of a warp */

/* From capability 9.0 on a kernel may begin while the one before it ends (CUDA C++ Programming Guide,
 * "Programmatic Dependent Launch"): as soon as all blocks of that one have called let_next_begin. Before
 * await_before it must touch nothing but weights. All threads of all kernels call await_before, even those
 * with nothing to do: so a kernel ends only after the one before it, and waiting for a kernel waits for all
 * before it. */
#ifdef CAKE_EXECUTOR
#define let_next_begin() ((void)0)
#define await_before()   executor_await_before()
#else
__device__ __forceinline__ void let_next_begin()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

__device__ __forceinline__ void await_before()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
#endif

/* The start of a kernel that reads no weights, or gains nothing by starting early. */
__device__ __forceinline__ void begin_kernel()
{
    let_next_begin();
    await_before();
}

struct cake_bf16 {
    uint16_t bits;
};

struct cake_f16 {
    uint16_t bits;
};

__device__ __forceinline__ float to_float(float x)
{
    return x;
}

__device__ __forceinline__ float to_float(cake_bf16 x)
{
    return __uint_as_float((uint32_t)x.bits << 16);
}

__device__ __forceinline__ float to_float(cake_f16 x)
{
#ifdef __CUDACC__
    return __half2float(__ushort_as_half(x.bits));
#else
    return cake_f16_to_f32(x.bits);
#endif
}

__device__ __forceinline__ void from_float(float &to, float x)
{
    to = x;
}

/* As cake_bf16_from_f32: rounds to nearest even; a NaN stays a NaN. */
__device__ __forceinline__ void from_float(cake_bf16 &to, float x)
{
    uint32_t bits = __float_as_uint(x);
    if ((bits & 0x7FFFFFFF) > 0x7F800000)
        to.bits = (uint16_t)(bits >> 16 | 0x40);
    else
        to.bits = (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/* As cake_f16_from_f32, also for NaN, whose payload the instruction drops. */
__device__ __forceinline__ void from_float(cake_f16 &to, float x)
{
#ifdef __CUDACC__
    const uint32_t bits = __float_as_uint(x);
    to.bits = x == x ? __half_as_ushort(__float2half_rn(x))
                     : (uint16_t)((bits >> 16 & 0x8000) | 0x7E00 | (bits >> 13 & 0x3FF));
#else
    to.bits = cake_f16_from_f32(x);
#endif
}

/* a b + c, rounded once. Nowhere else does the compiler fuse a product with a sum (-fmad=false, local.am),
 * which it might do in one kernel and not in another: so equal computations in two places have the same
 * bits. */
__device__ __forceinline__ float fused(float a, float b, float c)
{
#ifdef CAKE_EXECUTOR
    return a * b + c; /* a CPU without the instruction computes fmaf slowly */
#else
    return fmaf(a, b, c);
#endif
}

/* Two neighbouring elements as the word that tile products take, the first one in the lower half. */
template <typename T> __device__ __forceinline__ uint32_t pair_of(float low, float high)
{
    T a, b;
    from_float(a, low);
    from_float(b, high);
    return (uint32_t)b.bits << 16 | a.bits;
}

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
/* In one instruction; NaNs become another NaN than above. */
template <> __device__ __forceinline__ uint32_t pair_of<cake_bf16>(float low, float high)
{
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}
#endif

template <typename T> __device__ __forceinline__ float low_of(uint32_t pair)
{
    T x = {(uint16_t)pair};
    return to_float(x);
}

template <typename T> __device__ __forceinline__ float high_of(uint32_t pair)
{
    T x = {(uint16_t)(pair >> 16)};
    return to_float(x);
}

/* The sum over all lanes, in one order, for all lanes. */
__device__ __forceinline__ float warp_sum(float x)
{
    for (int flip = CAKE_WARP / 2; flip; flip /= 2)
        x += __shfl_xor_sync(CAKE_ALL, x, flip);
    return x;
}

/* The sum over all threads of a block of at most 1,024, in whole warps, for all threads. place [32]: shared
 * memory. */
__device__ __forceinline__ float block_sum(float x, float *place)
{
    int n_warp = (int)blockDim.x / CAKE_WARP;
    x = warp_sum(x);
    __syncthreads(); /* place may still be read for an earlier sum */
    if (threadIdx.x % CAKE_WARP == 0)
        place[threadIdx.x / CAKE_WARP] = x;
    __syncthreads();
    x = 0;
    for (int i = 0; i < n_warp; i++)
        x += place[i];
    return x;
}

#endif
