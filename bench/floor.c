/* SPDX-License-Identifier: Apache-2.0
 *
 * In: an instruction set, a number of threads. Out: operations and bytes a second that nothing can exceed.
 * Invariant: none of the project's kernels is used, so that a mistake of theirs does not move the floor.
 */
#include "bench/floor.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"

#define STEPS  10000000 /* of CHAINS multiply-adds */
#define CHAINS 12       /* enough for two units with a latency of 4 to 6, few enough for 16 registers */
#define BYTES  ((size_t)512 << 20) /* larger than any cache */
#define LINE   64

/* A loop that keeps the units busy, and one that does so with the memory; both return what may not be left out. */
typedef float chain_function(long steps);
typedef float stream_function(char *to, const char *from, size_t bytes);

typedef struct loops {
    const char *isa;
    double lanes;                          /* of float32 */
    chain_function *chain[FLOOR_INT8 + 1]; /* NULL: no such instruction */
    stream_function *stream[2];            /* read, copy */
} loops;

static float f32_plain(long steps)
{
    float sum[CHAINS] = {0};
    for (long i = 0; i < steps; i++)
        for (int c = 0; c < CHAINS; c++)
            sum[c] = sum[c] * 0.999f + 1.0f;
    float all = 0;
    for (int c = 0; c < CHAINS; c++)
        all += sum[c];
    return all;
}

static float read_plain(char *to, const char *from, size_t bytes)
{
    uint64_t all = 0, word;
    (void)to;
    for (size_t i = 0; i + sizeof word <= bytes; i += sizeof word) {
        memcpy(&word, from + i, sizeof word);
        all ^= word;
    }
    return (float)all;
}

static float copy_plain(char *to, const char *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return to[bytes / 2];
}

#if defined(__x86_64__)
#include <immintrin.h>

#define EACH(c, n) _Pragma("GCC unroll 12") for (int c = 0; c < (n); c++)

/* One body for all vector types: step(sum) is a multiply-add of constants. */
#define CHAIN(name, isa, type, begin, step)                                                                  \
    __attribute__((target(isa))) static float name(long steps)                                               \
    {                                                                                                        \
        type sum[CHAINS];                                                                                    \
        EACH(c, CHAINS) sum[c] = begin;                                                                      \
        for (long i = 0; i < steps; i++) {                                                                   \
            EACH(c, CHAINS)                                                                                  \
            {                                                                                                \
                sum[c] = step;                                                                               \
                __asm__ volatile("" : "+v"(sum[c]));                                                         \
            }                                                                                                \
        }                                                                                                    \
        float all = 0;                                                                                       \
        EACH(c, CHAINS) all += (float)sum[c][0];                                                             \
        return all;                                                                                          \
    }

/* Four streams with prefetch, since one that the hardware finds by itself is not the fastest everywhere. */
#define STREAMS(read, copy, isa, type, load, store, add, zero)                                               \
    __attribute__((target(isa))) static float read(char *to, const char *from, size_t bytes)                 \
    {                                                                                                        \
        type sum[4];                                                                                         \
        size_t part = bytes / 4 / sizeof(type) * sizeof(type);                                               \
        (void)to;                                                                                            \
        EACH(c, 4) sum[c] = zero();                                                                          \
        for (size_t i = 0; i < part; i += sizeof(type))                                                      \
            EACH(c, 4)                                                                                       \
            {                                                                                                \
                const char *at = from + (size_t)c * part + i;                                                \
                _mm_prefetch(at + 1536, _MM_HINT_T0);                                                        \
                sum[c] = add(sum[c], load((const void *)at));                                                \
            }                                                                                                \
        float all = 0;                                                                                       \
        EACH(c, 4) all += (float)sum[c][0];                                                                  \
        return all;                                                                                          \
    }                                                                                                        \
    __attribute__((target(isa))) static float copy(char *to, const char *from, size_t bytes)                 \
    {                                                                                                        \
        for (size_t i = 0; i < bytes / sizeof(type) * sizeof(type); i += sizeof(type))                       \
            store((void *)(to + i), load((const void *)(from + i)));                                         \
        return to[bytes / 2];                                                                                \
    }

CHAIN(f32_avx2, "avx2,fma", __m256, _mm256_set1_ps((float)c),
      _mm256_fmadd_ps(sum[c], _mm256_set1_ps(0.999f), _mm256_set1_ps(1)))
/* Bytes without VNNI: products in pairs, pairs of pairs, sums. */
CHAIN(int8_avx2, "avx2", __m256i, _mm256_set1_epi32(c),
      _mm256_add_epi32(sum[c], _mm256_madd_epi16(_mm256_maddubs_epi16(sum[c], _mm256_set1_epi8(1)),
                                                 _mm256_set1_epi16(1))))
STREAMS(read_avx2, copy_avx2, "avx2", __m256i, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_xor_si256,
        _mm256_setzero_si256)

CHAIN(f32_avx512, "avx512f", __m512, _mm512_set1_ps((float)c),
      _mm512_fmadd_ps(sum[c], _mm512_set1_ps(0.999f), _mm512_set1_ps(1)))
CHAIN(bf16_avx512, "avx512f,avx512bw,avx512bf16", __m512, _mm512_set1_ps((float)c),
      _mm512_dpbf16_ps(sum[c], (__m512bh)_mm512_set1_epi32(0x3C003C00),
                       (__m512bh)_mm512_set1_epi32(0x3C003C00)))
CHAIN(int8_vnni, "avx512f,avx512vnni", __m512i, _mm512_set1_epi32(c),
      _mm512_dpbusd_epi32(sum[c], _mm512_set1_epi32(0x01010101), _mm512_set1_epi32(0x01010101)))
STREAMS(read_avx512, copy_avx512, "avx512f", __m512i, _mm512_loadu_si512, _mm512_storeu_si512,
        _mm512_xor_si512, _mm512_setzero_si512)
#endif

/* The table's row; where int8 needs more than the table asks of the CPU, without it. */
static loops loops_of(const char *isa)
{
    static const loops rows[] = {
        {"ref", 1, {f32_plain, NULL, NULL}, {read_plain, copy_plain}},
#if defined(__x86_64__)
        {"avx2", 8, {f32_avx2, NULL, int8_avx2}, {read_avx2, copy_avx2}},
        {"avx512", 16, {f32_avx512, NULL, int8_vnni}, {read_avx512, copy_avx512}},
        {"avx512bf16", 16, {f32_avx512, bf16_avx512, int8_vnni}, {read_avx512, copy_avx512}},
#endif
    };
    size_t i = sizeof rows / sizeof *rows - 1;
    while (i && strcmp(rows[i].isa, isa))
        i--;
    loops row = rows[i];
#if defined(__x86_64__)
    if (row.chain[FLOOR_INT8] == int8_vnni && !__builtin_cpu_supports("avx512vnni"))
        row.chain[FLOOR_INT8] = NULL;
#endif
    return row;
}

typedef struct job {
    loops with;
    floor_kind kind;
    long steps;
    char *memory; /* [2 BYTES]: to, from */
    size_t bytes;
    float sink; /* a result that the compiler may not leave out */
} job;

static void run_chain(const cake_exec *exec, void *arg)
{
    job *j = arg;
    float result = j->with.chain[j->kind](j->steps);
    if (exec->rank == 0)
        j->sink += result;
}

static void run_stream(const cake_exec *exec, void *arg)
{
    job *j = arg;
    int64_t first, last;
    cake_exec_share(exec, (int64_t)j->bytes, 4096, &first, &last);
    char *to = j->memory + first;
    float result = j->with.stream[j->kind - FLOOR_READ](to, to + j->bytes, (size_t)(last - first));
    if (exec->rank == 0)
        j->sink += result;
}

static double measure_chain(const cake_bench *bench, job *j, int threads)
{
    static const double each[] = {
        [FLOOR_F32] = 2, [FLOOR_BF16] = 4, [FLOOR_INT8] = 8}; /* operations of a lane */
    j->steps = bench->smoke ? STEPS / 1000 : STEPS;
    if (!j->with.chain[j->kind])
        return 0;
    double seconds = cake_bench_time(bench, threads, run_chain, j);
    return each[j->kind] * j->with.lanes * CHAINS * (double)j->steps * threads / seconds;
}

static double measure_stream(const cake_bench *bench, job *j, int threads)
{
    cake_arena arena;
    j->bytes = bench->smoke ? BYTES / 64 : BYTES / 2;
    if (cake_arena_open(&arena, "bench", 2 * j->bytes))
        return 0;
    j->memory = cake_arena_take(&arena, 2 * j->bytes);
    memset(j->memory, 1, 2 * j->bytes);
    double seconds = cake_bench_time(bench, threads, run_stream, j);
    cake_arena_close(&arena);
    return (double)j->bytes * (j->kind == FLOOR_COPY ? 2 : 1) / seconds;
}

double floor_of(const cake_bench *bench, floor_kind kind, int threads)
{
    static struct {
        const char *isa;
        int threads;
        double value;
    } known[FLOOR_KINDS];
    if (known[kind].isa == bench->kernels->name && known[kind].threads == threads)
        return known[kind].value;
    job j = {.with = loops_of(bench->kernels->name), .kind = kind};
    double value = kind < FLOOR_READ ? measure_chain(bench, &j, threads) : measure_stream(bench, &j, threads);
    known[kind].isa = bench->kernels->name;
    known[kind].threads = threads;
    known[kind].value = value;
    return value;
}

/* One walk over all lines in an order that no prefetcher guesses (Sattolo 1986: one cycle). */
typedef struct walk {
    char *memory; /* lines that begin with the index of the next one */
    size_t lines;
    uint64_t at;
} walk;

static void step_on(const cake_exec *exec, void *arg)
{
    walk *w = arg;
    uint64_t at = w->at;
    (void)exec;
    for (size_t i = 0; i < w->lines / 4; i++)
        memcpy(&at, w->memory + at * LINE, sizeof at);
    w->at = at;
}

double floor_latency(const cake_bench *bench)
{
    cake_arena arena;
    size_t bytes = bench->smoke ? BYTES / 128 : BYTES / 2;
    walk w = {.lines = bytes / LINE};
    if (cake_arena_open(&arena, "bench", bytes))
        return 0;
    w.memory = cake_arena_take(&arena, bytes);
    uint32_t *order = cake_alloc(w.lines, sizeof *order);
    uint64_t random = 1;
    for (size_t i = 0; i < w.lines; i++)
        order[i] = (uint32_t)i;
    for (size_t i = w.lines - 1; i > 0; i--) {
        random = random * 6364136223846793005 + 1442695040888963407; /* Knuth, MMIX */
        size_t other = (size_t)((random >> 33) % i);
        uint32_t swapped = order[i];
        order[i] = order[other];
        order[other] = swapped;
    }
    for (size_t i = 0; i < w.lines; i++) {
        uint64_t next = order[i];
        memcpy(w.memory + i * LINE, &next, sizeof next);
    }
    free(order);
    double seconds = cake_bench_time(bench, 1, step_on, &w);
    cake_arena_close(&arena);
    return seconds / (double)(w.lines / 4);
}
