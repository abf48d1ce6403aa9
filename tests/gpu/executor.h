/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA on a CPU, for tests: the kernels of kernels/cuda compile against this header instead of nvcc's, and
 * each thread of a block is a fibre. Blocks run one after the other. Within a block, fibres run until they
 * wait for each other, from the first lane to the last or, with executor_backwards, from the last to the
 * first: a missing barrier changes the result. Fibres that never meet end the program with a message. Memory
 * comes from malloc, so AddressSanitizer sees every access outside of it.
 *
 * One thread at a time may launch.
 */
#ifndef CAKE_TESTS_GPU_EXECUTOR_H
#define CAKE_TESTS_GPU_EXECUTOR_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <functional>
#include <limits>

using std::max;
using std::min;

#ifdef CAKE_PTX
#define __global__ /* ptx2cc.py knows a kernel by its name */
#else
#define __global__ static
#endif
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __shared__ static
#define __launch_bounds__(...)
#define __restrict__

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};

struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};

/* Where the fibre that runs is. */
extern dim3 executor_thread, executor_block, executor_block_dim, executor_grid_dim;
#define threadIdx executor_thread
#define blockIdx  executor_block
#define blockDim  executor_block_dim
#define gridDim   executor_grid_dim

extern bool executor_backwards;   /* fibres, and blocks, run from the last one down */
extern int64_t executor_launches; /* so far */

extern "C" void cake_cuda_launched(int error, const char *kernel);
/* The kernel has its own copy of its arguments, as of now. */
void executor_launch(dim3 grid, dim3 block, size_t shared, const std::function<void()> &kernel);

#ifdef CAKE_PTX
/* The kernels are those that nvcc has made (ptx.h), with arguments as they lie there. */
enum { PTX_BYTES = 4096, PTX_ARGUMENTS = 32 };
struct ptx_arguments {
    alignas(16) char bytes[PTX_BYTES];
    int n, end;
    int first[PTX_ARGUMENTS], size[PTX_ARGUMENTS];
};

template <typename T> static void ptx_add(ptx_arguments &all, const T &argument)
{
    const int at = (all.end + (int)alignof(T) - 1) / (int)alignof(T) * (int)alignof(T);
    if (all.n == PTX_ARGUMENTS || at > PTX_BYTES - (int)sizeof argument)
        abort();
    memcpy(all.bytes + at, &argument, sizeof argument);
    all.first[all.n] = at;
    all.size[all.n++] = (int)sizeof argument;
    all.end = at + (int)sizeof argument;
}
void executor_launch_ptx(const void *kernel, dim3 grid, dim3 block, size_t shared,
                         const ptx_arguments &arguments);

template <typename... P, typename... A>
static void launch_ptx(dim3 grid, dim3 block, size_t shared, void (*kernel)(P...), A... argument)
{
    ptx_arguments all = {};
    (ptx_add<P>(all, (P)argument), ...);
    executor_launch_ptx((const void *)kernel, grid, block, shared, all);
}
#define CAKE_LAUNCH(kernel, grid, block, shared, ...)                                                        \
    (launch_ptx(grid, block, shared, kernel, __VA_ARGS__), cake_cuda_launched(0, #kernel))
#else
#define CAKE_LAUNCH(kernel, grid, block, shared, ...)                                                        \
    (executor_launch(grid, block, shared, std::bind([](auto... a) { kernel(a...); }, __VA_ARGS__)),          \
     cake_cuda_launched(0, #kernel))
#endif

/* For tests/gpu/runtime.c: it has launches from then on, and runs each as often as it likes, or drops it.
 * NULL: they run at once. */
extern "C" void (*executor_takes)(void *launch);
extern "C" void executor_run(void *launch);
extern "C" void executor_drop(void *launch);
/* For tests/gpu/memory.c: launches are kept as number i from now on, as well as done (-1: no more), and done
 * again. */
extern "C" void executor_record(int i);
extern "C" void executor_replay(int i);

/* The memory that a launch gives each block. */
void *executor_shared();
size_t executor_shared_size();
#define CAKE_SHARED(type, name) type *name = (type *)executor_shared()

void __syncthreads();
void __syncwarp(unsigned mask = 0xffffffffu);

/* All 32 lanes of a warp give n <= EXECUTOR_WORDS words, and may then read those of each other until they
 * give again. */
enum { EXECUTOR_WORDS = 6 };
void executor_give(unsigned mask, const uint32_t *word, int n);
int executor_lane();
extern const uint32_t *executor_given; /* to the fibre that runs: [word, lane] */
extern int executor_lanes;             /* of its warp */
void executor_misses_lane();

static inline uint32_t executor_word(int lane, int i)
{
    if (lane >= executor_lanes)
        executor_misses_lane();
    return executor_given[i * 32 + lane];
}

template <typename T> T __shfl_sync(unsigned mask, T value, int lane)
{
    static_assert(sizeof(T) == 4, "words of 32 bits only");
    uint32_t word;
    memcpy(&word, &value, 4);
    executor_give(mask, &word, 1);
    word = executor_word(lane & 31, 0);
    memcpy(&value, &word, 4);
    return value;
}

template <typename T> T __shfl_xor_sync(unsigned mask, T value, int flip)
{
    return __shfl_sync(mask, value, executor_lane() ^ flip);
}

/* Where between barriers the fibre that runs is: those of its block, and of its warp. */
struct executor_moment {
    uint64_t of_block, of_warp;
    int thread;
};
executor_moment executor_now();

/* Replaces the function of kernels/cuda/device_util.h: each thread must call it. */
void executor_await_before();
bool executor_has_awaited();

/* Replaces the functions of kernels/cuda/cp_async.h: 16 bytes are copied when they are waited for. */
void executor_copy(void *to, const void *from);
extern void (*executor_copied)(void *to); /* called when a copy is complete; may be NULL */
void executor_end_copies();
void executor_await_copies(int but);

/* Blocks run one after the other. */
static inline int32_t atomicAdd(int32_t *to, int32_t value)
{
    const int32_t before = *to;
    *to += value;
    return before;
}

static inline void __threadfence()
{
}

template <typename T> static inline T __ldcg(const T *from)
{
    return *from;
}

static inline uint32_t __float_as_uint(float value)
{
    uint32_t word;
    memcpy(&word, &value, 4);
    return word;
}

static inline float __uint_as_float(uint32_t word)
{
    float value;
    memcpy(&value, &word, 4);
    return value;
}

#endif
