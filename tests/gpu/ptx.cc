/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches of kernels as PTX has them, and operations of whole warps. Matrix fragments have the layout of the
 * PTX ISA ("Matrix fragments for mma.m16n8k16", "... m16n8k32"), independently of kernels/cuda/mma.h.
 */
#include "tests/gpu/ptx.h"

#include <stdio.h>
#include <stdlib.h>

#include <map>
#include <unordered_map>

enum { WARP = 32 };

void ptx_fail(const char *what)
{
    fprintf(stderr, "ptx: block %u,%u,%u, thread %u,%u,%u: %s\n", executor_block.x, executor_block.y,
            executor_block.z, executor_thread.x, executor_thread.y, executor_thread.z, what);
    abort();
}

/* ---- launches */

static std::map<const void *, const ptx_kernel *> &kernels()
{
    static std::map<const void *, const ptx_kernel *> all;
    return all;
}

ptx_kernel::ptx_kernel(const void *launched, const char *name_, void (*run_)(const char *), int n_param_,
                       const int *extent_, int bytes_, int threads_)
    : name(name_), run(run_), n_param(n_param_), extent(extent_), bytes(bytes_), threads(threads_)
{
    kernels()[launched] = this;
}

static const ptx_kernel *find(const void *launched)
{
    auto found = kernels().find(launched);
    if (found == kernels().end())
        ptx_fail("a launch of a kernel that there is no PTX of");
    return found->second;
}

void executor_launch_ptx(const void *launched, dim3 grid, dim3 block, size_t shared,
                         const ptx_arguments &arguments)
{
    const ptx_kernel *kernel = find(launched);
    bool same = arguments.n == kernel->n_param;
    for (int i = 0; same && i < arguments.n; i++)
        same = arguments.first[i] == kernel->extent[2 * i] && arguments.size[i] == kernel->extent[2 * i + 1];
    if (!same) {
        fprintf(stderr, "%s\n", kernel->name);
        ptx_fail("parameters that are other ones on a GPU");
    }
    if (kernel->threads && block.x * block.y * block.z > (unsigned)kernel->threads)
        ptx_fail("more threads of a block than the kernel has been compiled for");
    executor_launch(grid, block, shared + (size_t)kernel->bytes,
                    [kernel, arguments] { kernel->run(arguments.bytes); });
}

/* ---- memory */

/* Kernels that may run at the same moment: more may, but in tests memory is free for other things by then. */
enum { OVERLAP = 2 };
enum { UNIT = 16 };

/* The last launch that wrote each 16 bytes. */
static std::unordered_map<uint64_t, int64_t> &written()
{
    static std::unordered_map<uint64_t, int64_t> all;
    return all;
}

void ptx_written(uint64_t at, int)
{
    written()[at / UNIT] = executor_launches;
}

void ptx_early(uint64_t at, int)
{
    auto found = written().find(at / UNIT);
    if (found != written().end() && found->second > executor_launches - OVERLAP)
        ptx_fail("memory is read that a kernel before has written, and not been waited for");
}

/* ---- the memory of a block */

enum { SEVERAL = -1 };

/* The last writer of four bytes, and their readers since. */
struct touched {
    executor_moment write, read;
    int reading_warp; /* or SEVERAL; the thread of `read` may be SEVERAL, too */
};

static touched all_touched[(99 << 10) / 4];

/* Whether a barrier separates another thread's access from now. */
static bool is_before(const executor_moment &then, int warp, const executor_moment &now)
{
    return then.of_block != now.of_block ||
           (warp == now.thread / WARP && (then.of_warp != now.of_warp || then.thread == now.thread));
}

static void touch(touched &t, const executor_moment &now, bool writes)
{
    const bool reads_on = t.read.of_block == now.of_block && !writes;
    if (t.write.of_block && !is_before(t.write, t.write.thread / WARP, now))
        ptx_fail(writes ? "two threads write the same memory of the block with no barrier between"
                        : "memory of the block is read that another thread writes with no barrier between");
    if (writes && !is_before(t.read, t.reading_warp, now))
        ptx_fail("memory of the block is written that another thread reads with no barrier between");
    if (writes) {
        t.write = now;
        return;
    }
    const int warp = now.thread / WARP;
    const bool same =
        reads_on && t.reading_warp == warp && t.read.of_warp == now.of_warp && t.read.thread != now.thread;
    t.reading_warp = reads_on && t.reading_warp != warp ? SEVERAL : warp;
    t.read = now;
    if (same)
        t.read.thread = SEVERAL;
}

void ptx_touch(uint32_t offset, int size, bool writes)
{
    const executor_moment now = executor_now();
    for (uint32_t i = offset / 4; i <= (offset + (uint32_t)size - 1) / 4; i++)
        touch(all_touched[i], now, writes);
}

static void copied(void *to)
{
    ptx_touch((uint32_t)((char *)to - (char *)executor_shared()), 16, true);
}

static const bool is_registered = (executor_copied = copied, true);

/* ---- numbers of 16 bits */

float of_f16(uint16_t x)
{
    const int exponent = x >> 10 & 31, part = x & 1023;
    const float size = exponent == 31 ? (part ? NAN : INFINITY)
                       : exponent     ? ldexpf((float)(1024 + part), exponent - 25)
                                      : ldexpf((float)part, -24);
    return x & 0x8000 ? -size : size;
}

uint16_t to_f16(float x)
{
    const uint16_t sign = signbit(x) ? 0x8000 : 0;
    const float size = fabsf(x);
    int exponent;
    if (x != x)
        return 0x7FFF;
    if (size >= 65520) /* rounds to what is too large */
        return sign | 0x7C00;
    frexpf(size, &exponent); /* size < 2^exponent */
    exponent = size < 0x1p-14f ? -13 : exponent;
    const int part = (int)rintf(ldexpf(size, 11 - exponent)); /* 2048 is the next exponent's 1024 */
    return (uint16_t)(sign | (part + ((exponent + 13) << 10)));
}

static const float *all_f16()
{
    static float all[1 << 16];
    static bool there_are;
    for (int i = 0; !there_are && i < 1 << 16; i++)
        all[i] = of_f16((uint16_t)i);
    there_are = true;
    return all;
}

/* ---- what a warp does together */

shuffle shuffled(uint32_t value, uint32_t by, shuffle::how how, uint32_t clamp, uint32_t members)
{
    const int lane = executor_lane(), segment = (int)(clamp >> 8 & 31), bound = (int)(clamp & 31),
              b = (int)(by & 31);
    const int least = lane & segment, most = least | (bound & ~segment);
    int of = how == shuffle::IDX    ? least | (b & ~segment)
             : how == shuffle::BFLY ? lane ^ b
             : how == shuffle::UP   ? lane - b
                                    : lane + b;
    shuffle got;
    executor_give(members, &value, 1);
    got.is_other = how == shuffle::UP ? of >= most : of <= most;
    got.value = executor_word(got.is_other ? of : lane, 0);
    return got;
}

/* Where an element is: in which lane, and which one of it. */
struct place {
    int lane, element;
};

/* a [16, K], b [K, 8] and c [16, 8], 32 bits of a and b having EACH elements. */
template <int K> struct fragments {
    enum { EACH = K / 8 };
    place a[16][K], b[K][8];
    int row[WARP][4], column[WARP][4]; /* of c */

    fragments()
    {
        for (int lane = 0; lane < WARP; lane++) {
            const int group = lane >> 2, in_group = lane % 4;
            for (int i = 0; i < 4 * EACH; i++) {
                const bool upper = i < EACH || (i >= 2 * EACH && i < 3 * EACH);
                a[upper ? group : group + 8]
                 [in_group * EACH + (i & (EACH - 1)) + (i < 2 * EACH ? 0 : 4 * EACH)] = place{lane, i};
            }
            for (int i = 0; i < 2 * EACH; i++)
                b[in_group * EACH + (i & (EACH - 1)) + (i < EACH ? 0 : 4 * EACH)][group] = place{lane, i};
            for (int i = 0; i < 4; i++) {
                row[lane][i] = i < 2 ? group : group + 8;
                column[lane][i] = in_group * 2 + (i & 1);
            }
        }
    }
    /* Fetches the lane's two rows of a and two columns of b. */
    void fetch(uint32_t rows[2][K], uint32_t columns[2][K]) const
    {
        enum { BITS = 32 / EACH };
        const int lane = executor_lane();
        for (int k = 0; k < K; k += EACH) /* neighbours share a word */
            for (int i = 0; i < 2; i++) {
                const place x = a[row[lane][2 * i]][k], y = b[k][column[lane][i]];
                const uint32_t left = executor_word(x.lane, x.element / EACH),
                               right = executor_word(y.lane, 4 + y.element / EACH);
                for (int j = 0; j < EACH; j++) {
                    rows[i][k + j] = left >> (BITS * j);
                    columns[i][k + j] = right >> (BITS * j);
                }
            }
    }
};

template <bool IS_F16> void multiply_halves(float sum[4], const uint32_t word[6])
{
    static const fragments<16> tile;
    static const float *const f16 = all_f16();
    uint32_t rows[2][16], columns[2][16];
    executor_give(0xffffffffu, word, 6);
    tile.fetch(rows, columns);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 16; k++) {
            const uint32_t x = rows[i / 2][k], y = columns[i % 2][k];
            if (IS_F16)
                sum[i] += f16[x & 0xFFFF] * f16[y & 0xFFFF];
            else
                sum[i] += bits<float>(x << 16) * bits<float>(y << 16);
        }
}

template void multiply_halves<false>(float *, const uint32_t *);
template void multiply_halves<true>(float *, const uint32_t *);

void multiply_bytes(int32_t sum[4], const uint32_t word[6])
{
    static const fragments<32> tile;
    uint32_t rows[2][32], columns[2][32];
    executor_give(0xffffffffu, word, 6);
    tile.fetch(rows, columns);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 32; k++)
            sum[i] += (int8_t)rows[i / 2][k] * (int8_t)columns[i % 2][k];
}
