/* SPDX-License-Identifier: Apache-2.0
 *
 * Asynchronous copies to shared memory (PTX ISA, cp.async), in ordered groups. A thread sees the copies that
 * it has waited for; others see them after a barrier. Before capability 8.0 a copy is synchronous; tests do
 * it as late as allowed.
 */
#ifndef CAKE_KERNELS_CUDA_CP_ASYNC_H
#define CAKE_KERNELS_CUDA_CP_ASYNC_H

#include "kernels/cuda/device_util.h"

#ifdef CAKE_EXECUTOR
#define copy_ahead(to, from) executor_copy(to, from)
#define end_copies()         executor_end_copies()
#define call_ahead(from)     ((void)(from))
template <int BUT> static inline void await_copies()
{
    executor_await_copies(BUT);
}
#else
/* Copies 16 bytes; both addresses are multiples of 16. */
__device__ __forceinline__ void copy_ahead(uint4 *to, const uint4 *from)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
                 "l"(from)
                 : "memory");
#else
    *to = *from;
#endif
}

/* Prefetches into the GPU's L2 cache. */
__device__ __forceinline__ void call_ahead(const void *from)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(from));
}

/* The copies since the last call form a group. */
__device__ __forceinline__ void end_copies()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits until all groups but the latest BUT have arrived. */
template <int BUT> __device__ __forceinline__ void await_copies()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(BUT) : "memory");
#endif
}
#endif

#endif
