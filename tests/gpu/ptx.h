/* SPDX-License-Identifier: Apache-2.0
 *
 * Runtime of the C++ that ptx2cc.py makes of PTX: instructions that are more than one C++ expression, and
 * memory. Possible errors of a GPU end the program with a message: misaligned addresses, addresses outside of
 * the block's memory, two threads that access it without a barrier in between, and accesses to memory of the
 * previous kernel before that has ended.
 */
#ifndef CAKE_TESTS_GPU_PTX_H
#define CAKE_TESTS_GPU_PTX_H

#include "tests/gpu/executor.h"

[[noreturn]] void ptx_fail(const char *what);

/* A kernel as PTX has it, known by the address of what host code launches. */
struct ptx_kernel {
    const char *name;
    void (*run)(const char *arguments);
    int n_param;
    const int *extent;  /* of each parameter where it begins, and how long it is */
    int bytes, threads; /* of a block: memory without what a launch adds; how many at most, 0: any number */

    ptx_kernel(const void *launched, const char *name, void (*run)(const char *), int n_param,
               const int *extent, int bytes, int threads);
};

/* Reinterprets the bits as another type. */
template <typename TO, typename OF> static inline TO bits(OF x)
{
    static_assert(sizeof(TO) == sizeof(OF), "as many bits");
    TO to;
    memcpy(&to, &x, sizeof to);
    return to;
}

/* ---- memory */

static inline char *there(uint64_t at, int size)
{
    if (at % (uint64_t)size)
        ptx_fail("an address that is no multiple of the size of what is there");
    return (char *)(uintptr_t)at;
}

/* Fails if one of the last kernels, which may not have ended, writes the memory that this one reads. */
void ptx_early(uint64_t at, int size);
void ptx_written(uint64_t at, int size);

static inline char *loaded(uint64_t at, int size)
{
    if (!executor_has_awaited())
        ptx_early(at, size);
    return there(at, size);
}

static inline char *stored(uint64_t at, int size)
{
    if (!executor_has_awaited())
        ptx_fail("memory that is written before the kernel before has ended");
    ptx_written(at, size);
    return there(at, size);
}

/* Bytes of the memory of the block are read or written: no other thread may write, or read, them with no
 * barrier between. */
void ptx_touch(uint32_t offset, int size, bool writes);

/* The memory of the block: addresses are offsets. */
struct shared_memory {
    char *const base = (char *)executor_shared();
    const size_t all = executor_shared_size();

    char *at(uint32_t offset, int size, bool writes) const
    {
        if (offset % (uint32_t)size || offset + (size_t)size > all)
            ptx_fail("an address outside of the memory of the block, or between two elements");
        ptx_touch(offset, size, writes);
        return base + offset;
    }
    uint64_t address_of(uint64_t offset) const
    {
        return (uint64_t)(uintptr_t)base + offset;
    }
    uint64_t offset_of(uint64_t address) const
    {
        return address - (uint64_t)(uintptr_t)base;
    }
};

/* ---- whole numbers */

template <typename T> static inline T shifted_left(T x, uint32_t by)
{
    return by < 8 * sizeof(T) ? (T)(x << by) : (T)0;
}

template <typename T> static inline T shifted_right(T x, uint32_t by)
{
    return by < 8 * sizeof(T) ? (T)(x >> by) : x < 0 ? (T)-1 : (T)0;
}

/* PTX does not define a division by 0, and no kernel may depend on it. */
template <typename T> static inline T divided(T a, T b)
{
    if (b == 0)
        ptx_fail("a division by 0");
    return b == (T)-1 && (T)-1 < 0 ? (T)(0 - (uint64_t)a) : (T)(a / b);
}

template <typename T> static inline T rest(T a, T b)
{
    if (b == 0)
        ptx_fail("a division by 0");
    return b == (T)-1 && (T)-1 < 0 ? (T)0 : (T)(a % b);
}

/* length bits of a take the place of those of b from `from` on. */
static inline uint32_t bfi(uint32_t a, uint32_t b, uint32_t from, uint32_t length)
{
    from &= 255;
    length &= 255;
    for (uint32_t i = 0; i < length && from + i < 32; i++)
        b = (b & ~(1u << (from + i))) | (a >> i & 1) << (from + i);
    return b;
}

/* length bits of a, from `from` on. */
static inline uint32_t bfe(uint32_t a, uint32_t from, uint32_t length)
{
    from &= 255;
    length &= 255;
    return shifted_right(a, from) & ~(length < 32 ? ~0u << length : 0u);
}

/* Four bytes of eight, each named by four bits, the last of which has its sign fill the byte. */
static inline uint32_t prmt(uint32_t a, uint32_t b, uint32_t names)
{
    const uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t all = 0;
    for (int i = 0; i < 4; i++) {
        const uint32_t name = names >> (4 * i) & 15;
        uint32_t byte = (uint32_t)(bytes >> (8 * (name & 7))) & 255;
        if (name & 8)
            byte = byte & 128 ? 255 : 0;
        all |= byte << (8 * i);
    }
    return all;
}

static inline int32_t dp4a(uint32_t a, uint32_t b, int32_t c)
{
    for (int i = 0; i < 32; i += 8)
        c += (int8_t)(a >> i) * (int8_t)(b >> i);
    return c;
}

/* ---- numbers of float32 */

/* NaN only of two NaNs; -0 is less than +0. */
static inline float least_of(float a, float b)
{
    return a != a ? b : b != b ? a : a == b ? (signbit(a) ? a : b) : a < b ? a : b;
}

static inline float largest_of(float a, float b)
{
    return a != a ? b : b != b ? a : a == b ? (signbit(a) ? b : a) : a > b ? a : b;
}

static inline float saturated(float x)
{
    return x > 0 ? x < 1 ? x : 1 : 0;
}

/* .ftz: what is denormal is 0 of its sign. */
static inline float flushed(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

/* The nearest whole number that there is; of a NaN 0. */
template <typename T> static inline T to_whole(float x)
{
    const double least = (double)std::numeric_limits<T>::min(), most = (double)std::numeric_limits<T>::max();
    return x != x              ? (T)0
           : (double)x < least ? std::numeric_limits<T>::min()
           : (double)x > most  ? std::numeric_limits<T>::max()
                               : (T)x;
}

/* a + b as a float64, and what it lacks. */
static inline double sum_of(double a, double b, double *lacks)
{
    const double sum = a + b, part = sum - a;
    *lacks = (a - (sum - part)) + (b - part);
    return sum;
}

/* a b + c, rounded once, towards less. */
static inline float fma_downwards(float a, float b, float c)
{
    double lacks;
    const double sum = sum_of((double)a * b, c, &lacks);
    const float x = (float)sum;
    return (double)x > sum || ((double)x == sum && lacks < 0) ? nextafterf(x, -INFINITY) : x;
}

static inline float add_towards_zero(float a, float b)
{
    double lacks;
    const double sum = sum_of(a, b, &lacks);
    const float x = (float)sum;
    const bool far = sum > 0 ? (double)x > sum || ((double)x == sum && lacks < 0)
                             : (double)x < sum || ((double)x == sum && lacks > 0);
    return far ? nextafterf(x, 0) : x;
}

/* ---- numbers of 16 bits */

float of_f16(uint16_t x);
uint16_t to_f16(float x);

static inline uint32_t to_bf16(float x)
{
    const uint32_t word = bits<uint32_t>(x), below = word & 0xFFFF, up = word >> 16;
    if (x != x)
        return 0x7FFF;
    return up + (below > 0x8000 || (below == 0x8000 && (up & 1)) ? 1 : 0);
}

/* The first one is above. */
static inline uint32_t bf16_pair(float high, float low)
{
    return to_bf16(high) << 16 | to_bf16(low);
}

/* ---- what a warp does together */

struct shuffle {
    enum how { IDX, BFLY, UP, DOWN };
    uint32_t value;
    bool is_other; /* it is of a lane that there is */
};

shuffle shuffled(uint32_t value, uint32_t by, shuffle::how how, uint32_t clamp, uint32_t members);

/* d = a b + c. word: of a four, of b two; sum: c, and then d. Products are added one by one, k upwards; a GPU
 * may do so in another order, and with other roundings. */
template <bool IS_F16> void multiply_halves(float sum[4], const uint32_t word[6]);
void multiply_bytes(int32_t sum[4], const uint32_t word[6]);

#endif
