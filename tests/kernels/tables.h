/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the tests of kernels: every table that this CPU can run, reproducible random numbers, buffers of
 * exact size (so that ASan sees one float too many).
 */
#ifndef CAKE_TESTS_TABLES_H
#define CAKE_TESTS_TABLES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "kernels/kernels.h"
#include "tests/suite.h"
#ifdef CAKE_ON_EXECUTOR /* a program of tests/gpu: the kernels of GPUs, by fibres */
#include "kernels/cuda/cuda.h"
extern bool executor_backwards;
#endif

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static const int team_sizes[] = {1, 2, 3, 7};

/* On the executor all is slow: make check tries some cases, CAKE_ALL_GPU all of them. */
static inline bool is_executed(const cake_kernels *op)
{
    return !op->oracle && !getenv("CAKE_ALL_GPU");
}

/* In plain C each row is taken for itself, and slowly, and an emulator (CAKE_TEST_EMULATED) is slow with all:
 * fewer cases are enough. */
static inline bool is_slow(const cake_kernels *op)
{
    return op == &cake_kernels_ref || is_executed(op) || getenv("CAKE_TEST_EMULATED");
}

/* Whether products with a matrix of dtype round x to it. */
static inline bool rounds_input(const cake_kernels *op, cake_dtype dtype)
{
    return op->oracle ? dtype == CAKE_BF16 && op->oracle != &cake_kernels_ref
                      : dtype == CAKE_BF16 || dtype == CAKE_F16;
}

/* Calls test with each table; one that the CPU cannot run is skipped visibly. */
static inline void for_tables(void (*test)(const cake_kernels *op))
{
#ifdef CAKE_ON_EXECUTOR
    executor_backwards = false;
    test(&cake_kernels_cuda);
    executor_backwards = true;
    if (getenv("CAKE_ALL_GPU"))
        test(&cake_kernels_cuda);
#else
#ifdef __aarch64__
    static const char *const names[] = {"ref", "neon", "sve512", "neonbf16"};
#else
    static const char *const names[] = {"ref", "avx2", "avx512", "avx512bf16"};
#endif
    for (int i = 0; i < COUNT(names); i++) {
        const cake_kernels *op = cake_kernels_at(cake_kernels_level(names[i]));
        if (op)
            test(op);
        else
            printf("  SKIPPED: this build or CPU does not have %s\n", names[i]);
    }
    const cake_kernels *op;
    for (int i = 0; (op = cake_kernels_spare(i)); i++)
        test(op);
#endif
}

/* splitmix64 */
static inline uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
}

/* Owned, n floats in (-1, 1). */
static inline float *random_floats(size_t n, uint64_t seed)
{
    float *out = malloc(n * sizeof *out);
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    for (size_t i = 0; i < n; i++)
        out[i] = (float)((int64_t)(next_random(&seed) >> 39) - (1 << 24)) * 0x1p-24f;
    return out;
}

static inline float *copy_floats(const float *from, size_t n)
{
    float *out = malloc(n * sizeof *out);
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    return memcpy(out, from, n * sizeof *out);
}

/* Owned: in [n] as elements of dtype; each in[i] becomes the value that the element holds. */
static inline void *as_dtype(float *in, size_t n, cake_dtype dtype)
{
    void *out = malloc(n * cake_dtype_bytes(dtype));
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    uint16_t *half = out;
    if (dtype == CAKE_F32)
        memcpy(out, in, n * sizeof *in);
    else
        for (size_t i = 0; i < n; i++) {
            half[i] = dtype == CAKE_BF16 ? cake_bf16_from_f32(in[i]) : cake_f16_from_f32(in[i]);
            in[i] = dtype == CAKE_BF16 ? cake_bf16_to_f32(half[i]) : cake_f16_to_f32(half[i]);
        }
    return out;
}

static inline int same_bits(const float *a, const float *b, size_t n)
{
    return !memcmp(a, b, n * sizeof *a);
}

#endif
