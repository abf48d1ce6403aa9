/* SPDX-License-Identifier: Apache-2.0
 *
 * In: an instruction set, a number of threads. Out: peak operations and bytes per second.
 * Invariant: no operation of a kernel table is used, so that a slow kernel does not lower the peak.
 */
#include "kernels/peak.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "kernels/kernels.h"

#define CHAINS 12 /* enough for two units with a latency of 4 to 6, few enough for 16 registers */

/* Loops that keep the arithmetic units or the memory busy. They return a result, so that the compiler cannot
 * drop the work. */
typedef float chain_function(long steps);
typedef float stream_function(char *to, const char *from, size_t bytes);

typedef struct loops {
    const char *isa;
    double lanes;                              /* of float32 */
    chain_function *chain[CAKE_PEAK_INT8 + 1]; /* NULL: no such instruction */
    stream_function *stream[2];                /* read, copy */
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

/* Four streams with prefetch: a single stream with the hardware's prefetch is not the fastest on every
 * CPU. */
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

static bool has_int8(chain_function *chain)
{
    return chain != int8_vnni || __builtin_cpu_supports("avx512vnni");
}
#elif defined(__aarch64__)
#include <arm_neon.h>
#include <sys/auxv.h>

/* The instructions of a function; each compiler wants its own spelling. */
#ifdef __clang__
#define WITH(feature) __attribute__((target(#feature)))
#else
#define WITH(feature) __attribute__((target("arch=armv8.6-a+" #feature)))
#endif

/* Two registers a chain: up to four units. */
#define EACH(c)      _Pragma("GCC unroll 24") for (int c = 0; c < 2 * CHAINS; c++)

static float f32_neon(long steps)
{
    const float32x4_t by = vdupq_n_f32(0.999f), more = vdupq_n_f32(1);
    float32x4_t sum[2 * CHAINS];
    EACH(c) sum[c] = more;
    for (long i = 0; i < steps; i++)
        EACH(c)
        {
            sum[c] = vfmaq_f32(more, sum[c], by);
            __asm__ volatile("" : "+w"(sum[c]));
        }
    float all = 0;
    EACH(c) all += sum[c][0];
    return all;
}

WITH(bf16) static float bf16_bfdot(long steps)
{
    const uint16x8_t some = vdupq_n_u16(0x3C00);
    float32x4_t sum[2 * CHAINS];
    EACH(c) sum[c] = vdupq_n_f32((float)c);
    for (long i = 0; i < steps; i++)
        EACH(c)
    __asm__ volatile("bfdot %0.4s, %1.8h, %1.8h" : "+w"(sum[c]) : "w"(some));
    float all = 0;
    EACH(c) all += sum[c][0];
    return all;
}

WITH(dotprod) static float int8_sdot(long steps)
{
    const int8x16_t ones = vdupq_n_s8(1);
    int32x4_t sum[2 * CHAINS];
    EACH(c) sum[c] = vdupq_n_s32(c);
    for (long i = 0; i < steps; i++)
        EACH(c)
    __asm__ volatile("sdot %0.4s, %1.16b, %1.16b" : "+w"(sum[c]) : "w"(ones));
    float all = 0;
    EACH(c) all += (float)sum[c][0];
    return all;
}

/* Each product of eight values counts as two of SDOT. */
WITH(i8mm) static float int8_smmla(long steps)
{
    const int8x16_t ones = vdupq_n_s8(1);
    int32x4_t sum[2 * CHAINS];
    EACH(c) sum[c] = vdupq_n_s32(c);
    for (long i = 0; i < steps; i += 2)
        EACH(c)
    __asm__ volatile("smmla %0.4s, %1.16b, %1.16b" : "+w"(sum[c]) : "w"(ones));
    float all = 0;
    EACH(c) all += (float)sum[c][0];
    return all;
}

/* 24 registers of SVE, whatever their width, which the compiler of this file does not know. */
#define FIRST_12(Z)  Z(0) Z(1) Z(2) Z(3) Z(4) Z(5) Z(6) Z(7) Z(8) Z(9) Z(10) Z(11)
#define SECOND_12(Z) Z(12) Z(13) Z(14) Z(15) Z(16) Z(17) Z(18) Z(19) Z(20) Z(21) Z(22) Z(23)
#define TIMES_24(Z)  FIRST_12(Z) SECOND_12(Z)
#define SVE_CHAIN(name, STEP)                                                                                \
    WITH(sve) static float name(long steps)                                                                  \
    {                                                                                                        \
        __asm__ volatile("ptrue p0.b\n" TIMES_24(SVE_ZERO)                                                   \
                             SVE_ZERO(24) "1:\n" TIMES_24(STEP) "subs %0, %0, #1\n\tb.ne 1b\n"               \
                         : "+r"(steps)::"cc", "memory", "p0", "v0", "v1", "v2", "v3", "v4", "v5", "v6",      \
                           "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18",  \
                           "v19", "v20", "v21", "v22", "v23", "v24");                                        \
        return 0;                                                                                            \
    }
#define SVE_ZERO(i) "dup z" #i ".s, #0\n"
#define SVE_FMLA(i) "fmla z" #i ".s, p0/m, z24.s, z24.s\n"
#define SVE_SDOT(i) "sdot z" #i ".s, z24.b, z24.b\n"
SVE_CHAIN(f32_sve, SVE_FMLA)
SVE_CHAIN(int8_sve, SVE_SDOT)

/* Four streams, as above. */
static float read_neon(char *to, const char *from, size_t bytes)
{
    uint8x16_t sum[4] = {vdupq_n_u8(0), vdupq_n_u8(0), vdupq_n_u8(0), vdupq_n_u8(0)};
    const size_t part = bytes / 4 / sizeof *sum * sizeof *sum;
    (void)to;
    for (size_t i = 0; i < part; i += sizeof *sum)
        for (int c = 0; c < 4; c++) {
            const char *at = from + (size_t)c * part + i;
            __builtin_prefetch(at + 1536);
            sum[c] = veorq_u8(sum[c], vld1q_u8((const uint8_t *)at));
        }
    return (float)(sum[0][0] ^ sum[1][0] ^ sum[2][0] ^ sum[3][0]);
}

static bool has_int8(chain_function *chain)
{
    return chain != int8_sdot || getauxval(AT_HWCAP) & HWCAP_ASIMDDP;
}
#else
static bool has_int8(chain_function *chain)
{
    return chain != NULL;
}
#endif

/* The loops of an instruction set; without int8 if the CPU lacks the additional instructions for it. */
static loops loops_of(const char *isa)
{
    static const loops rows[] = {
        {"ref", 1, {f32_plain, NULL, NULL}, {read_plain, copy_plain}},
#if defined(__x86_64__)
        {"avx2", 8, {f32_avx2, NULL, int8_avx2}, {read_avx2, copy_avx2}},
        {"avx512", 16, {f32_avx512, NULL, int8_vnni}, {read_avx512, copy_avx512}},
        {"avx512bf16", 16, {f32_avx512, bf16_avx512, int8_vnni}, {read_avx512, copy_avx512}},
#elif defined(__aarch64__)
        {"neon", 8, {f32_neon, NULL, int8_sdot}, {read_neon, copy_plain}},
        {"sve512", 32, {f32_sve, NULL, int8_sve}, {read_neon, copy_plain}},
        {"neonbf16", 8, {f32_neon, bf16_bfdot, int8_smmla}, {read_neon, copy_plain}},
#endif
    };
    size_t i = sizeof rows / sizeof *rows - 1;
    while (i && strcmp(rows[i].isa, isa))
        i--;
    loops row = rows[i];
    if (!has_int8(row.chain[CAKE_PEAK_INT8]))
        row.chain[CAKE_PEAK_INT8] = NULL;
    return row;
}

cake_peak_kind cake_peak_of_products(const cake_kernels *kernels, cake_dtype dtype)
{
    if ((dtype == CAKE_I8 || dtype == CAKE_Q8) && loops_of(kernels->name).chain[CAKE_PEAK_INT8])
        return CAKE_PEAK_INT8;
    bool pairs = dtype == CAKE_BF16 && kernels->oracle && kernels->oracle != &cake_kernels_ref;
    return pairs ? CAKE_PEAK_BF16 : CAKE_PEAK_F32;
}

const char *cake_peak_name(cake_peak_kind kind)
{
    static const char *const names[CAKE_PEAK_KINDS] = {[CAKE_PEAK_F32] = "peak.f32",
                                                       [CAKE_PEAK_BF16] = "peak.bf16",
                                                       [CAKE_PEAK_INT8] = "peak.int8",
                                                       [CAKE_PEAK_READ] = "peak.read",
                                                       [CAKE_PEAK_COPY] = "peak.copy"};
    return names[kind];
}

struct cake_peak {
    loops with;
    cake_peak_kind kind;
    int64_t size; /* steps, or bytes */
    cake_arena arena;
    char *memory; /* of the streams: [size] to read, or [2 size] to copy into and from */
    float sink;   /* keeps the compiler from dropping the work */
};

static bool is_stream(cake_peak_kind kind)
{
    return kind >= CAKE_PEAK_READ;
}

/* The part of a stream that is this member's. */
static char *share_of(const cake_exec *exec, const cake_peak *f, size_t *bytes)
{
    int64_t first, last;
    cake_exec_range(exec, f->size, 4096, &first, &last);
    *bytes = (size_t)(last - first);
    return f->memory + first;
}

/* The beginning of a stream's source. */
static int64_t source(const cake_peak *f)
{
    return f->kind == CAKE_PEAK_COPY ? f->size : 0;
}

/* Each member first touches the memory that it will use, so that its pages are in its NUMA domain. */
static void touch(const cake_exec *exec, void *arg)
{
    const cake_peak *f = arg;
    size_t bytes;
    char *to = share_of(exec, f, &bytes);
    memset(to, 1, bytes);
    if (source(f))
        memset(to + source(f), 1, bytes);
}

cake_err cake_peak_open(const char *isa, cake_peak_kind kind, int64_t size, int threads, cake_peak **out)
{
    cake_peak *f = cake_alloc(1, sizeof *f);
    *f = (cake_peak){.with = loops_of(isa), .kind = kind, .size = size};
    cake_err err = CAKE_OK;
    if (is_stream(kind)) {
        size_t bytes = (size_t)(size + source(f));
        err = cake_arena_open(&f->arena, "measuring", cake_arena_round(bytes));
        if (!err) {
            f->memory = cake_arena_take(&f->arena, bytes);
            cake_exec_run(threads, touch, f);
        }
    } else if (!f->with.chain[kind]) {
        err = CAKE_END;
    }
    if (err)
        cake_peak_close(f);
    else
        *out = f;
    return err;
}

void cake_peak_close(cake_peak *f)
{
    if (f)
        cake_arena_close(&f->arena);
    free(f);
}

void cake_peak_work(const cake_exec *exec, void *peak)
{
    cake_peak *f = peak;
    float result;
    if (is_stream(f->kind)) {
        size_t bytes;
        char *to = share_of(exec, f, &bytes);
        result = f->with.stream[f->kind - CAKE_PEAK_READ](to, to + source(f), bytes);
    } else {
        result = f->with.chain[f->kind]((long)f->size);
    }
    if (exec->rank == 0)
        f->sink += result;
}

/* Operations per lane and step, or bytes counted per byte of memory. */
static const double each[] = {[CAKE_PEAK_F32] = 2,
                              [CAKE_PEAK_BF16] = 4,
                              [CAKE_PEAK_INT8] = 8,
                              [CAKE_PEAK_READ] = 1,
                              [CAKE_PEAK_COPY] = 2};

double cake_peak_amount(const cake_peak *f, int threads)
{
    return each[f->kind] * (double)f->size * (is_stream(f->kind) ? 1 : f->with.lanes * CHAINS * threads);
}

/* Rate of each member of a team, and the fraction of the time in which its thread had a cpu. */
typedef struct steady {
    const cake_peak *peak;
    double seconds;
    double *rate, *share; /* [threads] */
} steady;

static double thread_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void keep_on(const cake_exec *exec, void *arg)
{
    enum { PIECE = 1 << 20 };
    const steady *s = arg;
    const cake_peak *f = s->peak;
    bool stream = is_stream(f->kind);
    size_t bytes = 0, at = 0;
    char *to = stream ? share_of(exec, f, &bytes) : NULL;
    double amount = 0, start = cake_clock_now(), had = thread_seconds(), now;
    do {
        size_t n = bytes - at < PIECE ? bytes - at : PIECE;
        if (stream)
            f->with.stream[f->kind - CAKE_PEAK_READ](to + at, to + at + source(f), n);
        else
            f->with.chain[f->kind]((long)f->size);
        amount += each[f->kind] * (stream ? (double)n : f->with.lanes * CHAINS * (double)f->size);
        at = at + n < bytes ? at + n : 0;
        now = cake_clock_now();
    } while (now - start < s->seconds);
    s->rate[exec->rank] = amount / (now - start);
    s->share[exec->rank] = (thread_seconds() - had) / (now - start);
}

double cake_peak_quick(const char *isa, cake_peak_kind kind, int64_t bytes, int threads, double seconds,
                       double *share)
{
    enum { STEPS = 5000 }; /* some 10 us */
    cake_peak *f;
    double rate = 0;
    *share = 1;
    if (cake_peak_open(isa, kind, is_stream(kind) ? bytes : STEPS, threads, &f))
        return 0;
    size_t n = (size_t)threads;
    steady s = {f, seconds, cake_alloc(n, sizeof *s.rate), cake_alloc(n, sizeof *s.share)};
    cake_exec_run(threads, keep_on, &s);
    for (size_t i = 0; i < n; i++) {
        rate += s.rate[i];
        *share = s.share[i] < *share ? s.share[i] : *share;
    }
    free(s.rate);
    free(s.share);
    cake_peak_close(f);
    return rate;
}
