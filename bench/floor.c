/* SPDX-License-Identifier: Apache-2.0
 *
 * In: an instruction set, a number of threads. Out: operations and bytes a second that nothing can exceed.
 * Invariant: none of the project's kernels is used, so that a mistake of theirs does not move the floor.
 */
#include "floor.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "kernels/kernels.h"

#define TRIES  3        /* the best one counts: noise only slows down */
#define STEPS  10000000 /* of CHAINS multiply-adds */
#define CHAINS 12       /* enough for two units with a latency of 4 to 6, few enough for 16 registers */
#define BYTES  ((size_t)512 << 20) /* larger than any cache */

typedef struct job {
    const char *isa;
    const char *memory;
    float sink; /* a result that the compiler may not leave out */
} job;

#if defined(__x86_64__)
#include <immintrin.h>

/* One body for two vector types. */
#define FMA_LOOP(type, set, fma)                                                                             \
    type sum[CHAINS], scale = set(0.999f), one = set(1.0f);                                                  \
    _Pragma("GCC unroll 12") for (int c = 0; c < CHAINS; c++) sum[c] = set((float)c);                        \
    for (long i = 0; i < STEPS; i++) {                                                                       \
        _Pragma("GCC unroll 12") for (int c = 0; c < CHAINS; c++)                                            \
        {                                                                                                    \
            sum[c] = fma(sum[c], scale, one);                                                                \
            __asm__ volatile("" : "+v"(sum[c]));                                                             \
        }                                                                                                    \
    }                                                                                                        \
    float all = 0;                                                                                           \
    _Pragma("GCC unroll 12") for (int c = 0; c < CHAINS; c++) all += sum[c][0];                              \
    return all

/* Four streams with prefetch, since one that the hardware finds by itself is not the fastest everywhere. */
#define READ_LOOP(type, load, add, zero)                                                                     \
    type sum[4];                                                                                             \
    size_t part = bytes / 4 / sizeof(type) * sizeof(type);                                                   \
    _Pragma("GCC unroll 4") for (int c = 0; c < 4; c++) sum[c] = zero();                                     \
    for (size_t i = 0; i < part; i += sizeof(type))                                                          \
        _Pragma("GCC unroll 4") for (int c = 0; c < 4; c++)                                                  \
        {                                                                                                    \
            const char *at = memory + (size_t)c * part + i;                                                  \
            _mm_prefetch(at + 1536, _MM_HINT_T0);                                                            \
            sum[c] = add(sum[c], load((const void *)at));                                                    \
        }                                                                                                    \
    float all = 0;                                                                                           \
    _Pragma("GCC unroll 4") for (int c = 0; c < 4; c++) all += (float)sum[c][0];                             \
    return all

__attribute__((target("avx512f"))) static float fma_avx512(void)
{
    FMA_LOOP(__m512, _mm512_set1_ps, _mm512_fmadd_ps);
}

__attribute__((target("avx512f"))) static float read_avx512(const char *memory, size_t bytes)
{
    READ_LOOP(__m512i, _mm512_loadu_si512, _mm512_xor_si512, _mm512_setzero_si512);
}

__attribute__((target("avx2,fma"))) static float fma_avx2(void)
{
    FMA_LOOP(__m256, _mm256_set1_ps, _mm256_fmadd_ps);
}

__attribute__((target("avx2,fma"))) static float read_avx2(const char *memory, size_t bytes)
{
    READ_LOOP(__m256i, _mm256_loadu_si256, _mm256_xor_si256, _mm256_setzero_si256);
}
#endif

static float fma_plain(void)
{
    float sum[CHAINS] = {0};
    for (long i = 0; i < STEPS; i++)
        for (int c = 0; c < CHAINS; c++)
            sum[c] = sum[c] * 0.999f + 1.0f;
    float all = 0;
    for (int c = 0; c < CHAINS; c++)
        all += sum[c];
    return all;
}

static float read_plain(const char *memory, size_t bytes)
{
    uint64_t all = 0, word;
    for (size_t i = 0; i + sizeof word <= bytes; i += sizeof word) {
        memcpy(&word, memory + i, sizeof word);
        all ^= word;
    }
    return (float)all;
}

static int lanes_of(const char *isa)
{
#if defined(__x86_64__)
    if (!strcmp(isa, "avx2"))
        return 8;
    if (!strncmp(isa, "avx512", 6))
        return 16;
#endif
    (void)isa;
    return 1;
}

static void run_fma(const cake_exec *exec, void *arg)
{
    job *j = arg;
    float result;
    switch (lanes_of(j->isa)) {
#if defined(__x86_64__)
    case 16:
        result = fma_avx512();
        break;
    case 8:
        result = fma_avx2();
        break;
#endif
    default:
        result = fma_plain();
    }
    if (exec->rank == 0)
        j->sink += result;
}

static void run_read(const cake_exec *exec, void *arg)
{
    job *j = arg;
    int64_t first, last;
    cake_exec_share(exec, (int64_t)BYTES, 4096, &first, &last);
    const char *memory = j->memory + first;
    float result;
    switch (lanes_of(j->isa)) {
#if defined(__x86_64__)
    case 16:
        result = read_avx512(memory, (size_t)(last - first));
        break;
    case 8:
        result = read_avx2(memory, (size_t)(last - first));
        break;
#endif
    default:
        result = read_plain(memory, (size_t)(last - first));
    }
    if (exec->rank == 0)
        j->sink += result;
}

static double best_of(int threads, void (*work)(const cake_exec *exec, void *arg), job *j)
{
    double best = 1e30;
    for (int i = 0; i < TRIES; i++) {
        double start = cake_clock_now();
        cake_exec_run(threads, work, j);
        double seconds = cake_clock_now() - start;
        best = seconds < best ? seconds : best;
    }
    return best;
}

double floor_flops(const char *isa, int threads)
{
    job j = {.isa = isa};
    return 2.0 * CHAINS * STEPS * lanes_of(isa) * threads / best_of(threads, run_fma, &j);
}

double floor_read(const char *isa, int threads)
{
    cake_arena arena;
    if (cake_arena_open(&arena, "bench", BYTES))
        return 0;
    char *memory = cake_arena_take(&arena, BYTES);
    memset(memory, 1, BYTES);
    job j = {.isa = isa, .memory = memory};
    double seconds = best_of(threads, run_read, &j);
    cake_arena_close(&arena);
    return (double)BYTES / seconds;
}
