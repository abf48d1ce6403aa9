/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the features of this CPU. Out: the tables that may run on it. Invariant: a table's index in the list is
 * the same in every build of one configuration, so ranks on different machines can agree on a level.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cpu/cpu.h"

static bool always(void)
{
    return true;
}

#ifdef HAVE_X86_KERNELS
#include <cpuid.h>

/* __builtin_cpu_supports also checks (xgetbv) that the operating system saves the registers. Not every
 * compiler knows F16C. */
static bool has_avx2(void)
{
    unsigned a, b, c = 0, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) && __builtin_cpu_supports("avx2") &&
           __builtin_cpu_supports("fma");
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

static bool has_avx512vnni(void)
{
    return has_avx512() && __builtin_cpu_supports("avx512vnni");
}

static bool has_avx512bf16(void)
{
    return has_avx512vnni() && __builtin_cpu_supports("avx512bf16"); /* no CPU has it without VNNI */
}
#endif

#ifdef HAVE_ARM_KERNELS
#include <sys/auxv.h>

static bool has_neondot(void)
{
    return getauxval(AT_HWCAP) & HWCAP_ASIMDDP;
}

/* No CPU has one of these two without the other. */
static bool has_neonbf16(void)
{
    return has_neondot() && getauxval(AT_HWCAP2) & HWCAP2_BF16 && getauxval(AT_HWCAP2) & HWCAP2_I8MM;
}
#endif

#ifdef HAVE_SVE_KERNELS
#include <sys/prctl.h>

/* Code for registers of one width is wrong with any other. */
static bool has_sve(int bits)
{
    return getauxval(AT_HWCAP) & HWCAP_SVE && (prctl(PR_SVE_GET_VL) & PR_SVE_VL_LEN_MASK) == bits / 8;
}

static bool has_sve256(void)
{
    return has_sve(256);
}

static bool has_sve512(void)
{
    return has_sve(512);
}
#endif

/* The tables of a level have one name and the same bits; the last one that may run is the fastest. */
enum { TABLES = 3 };
static const struct {
    const cake_kernels *table;
    bool (*allowed)(void);
} levels[][TABLES] = {
    {{&cake_kernels_ref, always}},
#ifdef HAVE_X86_KERNELS
    {{&cake_kernels_avx2, has_avx2}},
    {{&cake_kernels_avx512, has_avx512}, {&cake_kernels_avx512vnni, has_avx512vnni}},
    {{&cake_kernels_avx512bf16, has_avx512bf16}},
#endif
#ifdef HAVE_ARM_KERNELS
#ifdef HAVE_SVE_KERNELS
    {{&cake_kernels_neon, always}, {&cake_kernels_neondot, has_neondot}, {&cake_kernels_sve256, has_sve256}},
    {{&cake_kernels_sve512, has_sve512}},
#else
    {{&cake_kernels_neon, always}, {&cake_kernels_neondot, has_neondot}},
#endif
    {{&cake_kernels_neonbf16, has_neonbf16}},
#endif
};

#define N_LEVEL ((int)(sizeof levels / sizeof *levels))

static bool may_run(int level, int i)
{
    return levels[level][i].table && levels[level][i].allowed();
}

/* Bytes; 0: unknown. The C library asks x86 only. */
static int64_t first_cache_of_linux(void)
{
    long kib = 0;
    FILE *f = fopen("/sys/devices/system/cpu/cpu0/cache/index0/size", "r");
    if (f) {
        if (fscanf(f, "%ldK", &kib) != 1)
            kib = 0;
        fclose(f);
    }
    return kib > 0 ? (int64_t)kib << 10 : 0;
}

int64_t cake_cpu_first_cache(void)
{
    static _Atomic int64_t known =
        -1; /* asked once: cpuid may trap in a virtual machine, and files are slow */
    int64_t bytes = known;
    if (bytes < 0) {
#ifdef _SC_LEVEL1_DCACHE_SIZE
        bytes = sysconf(_SC_LEVEL1_DCACHE_SIZE);
#endif
        bytes = bytes > 0 ? bytes : first_cache_of_linux();
        known = bytes;
    }
    return bytes;
}

int cake_kernels_best(void)
{
    int level = N_LEVEL - 1;
    while (!may_run(level, 0))
        level--;
    return level;
}

int cake_kernels_exact(void)
{
    int level = cake_kernels_best();
    while (!may_run(level, 0) || levels[level][0].table->oracle != &cake_kernels_ref)
        level--;
    return level;
}

int64_t cake_kernels_up_to(int level)
{
    int64_t bits = 0;
    for (int i = 0; i <= level; i++)
        bits |= (int64_t)may_run(i, 0) << i;
    return bits;
}

int cake_kernels_level(const char *name)
{
    for (int level = 0; level < N_LEVEL; level++)
        if (!strcmp(levels[level][0].table->name, name))
            return level;
    return -1;
}

const cake_kernels *cake_kernels_at(int level)
{
    const cake_kernels *best = NULL;
    for (int i = 0; i < TABLES && level >= 0 && level < N_LEVEL && may_run(level, 0); i++)
        if (may_run(level, i))
            best = levels[level][i].table;
    return best;
}

const cake_kernels *cake_kernels_spare(int i)
{
    for (int level = 0; level < N_LEVEL; level++)
        for (int t = 0; t < TABLES; t++)
            if (may_run(level, t) && cake_kernels_at(level) != levels[level][t].table && i-- == 0)
                return levels[level][t].table;
    return NULL;
}
