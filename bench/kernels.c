/* SPDX-License-Identifier: Apache-2.0
 *
 * How near linear is to what the machine can do, on the shapes of Qwen3-0.6B in BF16. Out: for each number of
 * threads the two floors, then each shape and number of rows with its share of the floor that binds it; a table on
 * standard output, CSV in a file if one is named.
 *
 *   bench/kernels [ISA [THREADS [CSV]]]      THREADS: only so many; default: 1, 2, 4, ... up to all CPUs
 *
 * Invariant: a product that does not have the bits of ref is not timed. Weights are read from memory: so many
 * copies of small matrices take turns that no cache holds them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "floor.h"
#include "kernels/kernels.h"

#define SECONDS 0.4 /* at least, of a measurement */
#define TRIES   3   /* the best one counts */
#define ROWS    512
#define BYTES   ((size_t)256 << 20) /* of all copies of a matrix */
#define SAMPLE  64                  /* columns that ref computes too */

typedef struct shape {
    const char *name;
    int n_out, n_in;
} shape;

static const shape shapes[] = {
    {"q", 2048, 1024},    {"k", 1024, 1024},    {"o", 1024, 2048},
    {"gate", 3072, 1024}, {"down", 1024, 3072}, {"head", 151936, 1024},
};
static const int row_counts[] = {1, 8, 32, 128, 512};

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

typedef struct job {
    const cake_kernels *op;
    cake_weight w;
    size_t bytes; /* of one copy; copies follow one another */
    int n_copy, copy, n_tok, repeat;
    float *x, *out; /* [ROWS, n_in] [ROWS, n_out] */
} job;

typedef struct floors {
    double flops, read;
} floors;

static uint16_t weight_at(int64_t row, int64_t k)
{
    uint64_t h = ((uint64_t)row << 20 ^ (uint64_t)k) * 0x9E3779B97F4A7C15;
    return cake_bf16_from_f32((float)(int32_t)(h >> 32) * 0x1p-36f);
}

static void fill_row(uint16_t *row, int64_t index, int n_in)
{
    for (int k = 0; k < n_in; k++)
        row[k] = weight_at(index, k);
}

static void pack_all(const job *j)
{
    uint16_t *rows = cake_alloc(32 * (size_t)j->w.n_in, sizeof *rows);
    for (int first = 0; first < j->w.n_out; first += 32) {
        int n = j->w.n_out - first < 32 ? j->w.n_out - first : 32;
        for (int i = 0; i < n; i++)
            fill_row(rows + (size_t)i * (size_t)j->w.n_in, first + i, j->w.n_in);
        j->op->weight_pack(&j->w, rows, first, n);
    }
    free(rows);
    for (int i = 1; i < j->n_copy; i++)
        memcpy((char *)j->w.data + (size_t)i * j->bytes, j->w.data, j->bytes);
}

static void multiply(const cake_exec *exec, void *arg)
{
    job *j = arg;
    for (int i = 0; i < j->repeat; i++) {
        cake_weight w = j->w;
        w.data = (char *)w.data + (size_t)((j->copy + i) % j->n_copy) * j->bytes;
        j->op->linear(exec, j->out, j->x, &w, NULL, NULL, j->n_tok);
        cake_exec_barrier(exec);
    }
}

/* Whether SAMPLE columns, spread over the matrix, are those of ref, bit for bit. */
static int same_as_ref(job *j, int threads)
{
    const cake_kernels *ref = j->op->oracle;
    int n_in = j->w.n_in, same = 1;
    size_t row_bytes = (size_t)n_in * 2;
    cake_weight w = {cake_alloc(SAMPLE, row_bytes + 64), SAMPLE, n_in, CAKE_BF16};
    uint16_t *row = cake_alloc(1, row_bytes);
    float *out = cake_alloc((size_t)j->n_tok * SAMPLE, sizeof *out);
    int64_t far = (j->w.n_out - 1) / (SAMPLE - 1);
    for (int i = 0; i < SAMPLE; i++) {
        fill_row(row, i * far, n_in);
        ref->weight_pack(&w, row, i, 1);
    }
    ref->linear(&(cake_exec){0, 1, NULL}, out, j->x, &w, NULL, NULL, j->n_tok);
    j->repeat = 1;
    cake_exec_run(threads, multiply, j);
    for (int64_t t = 0; t < j->n_tok; t++)
        for (int i = 0; i < SAMPLE; i++)
            same &= !memcmp(&out[t * SAMPLE + i], &j->out[t * j->w.n_out + i * far], sizeof *out);
    free(w.data);
    free(row);
    free(out);
    return same;
}

static double seconds_of(job *j, int threads)
{
    double best = 1e30;
    j->repeat = 1;
    for (int tries = 0; tries < TRIES;) {
        double start = cake_clock_now();
        cake_exec_run(threads, multiply, j);
        double seconds = cake_clock_now() - start;
        j->copy = (j->copy + j->repeat) % j->n_copy;
        if (seconds < SECONDS / TRIES && j->repeat < 1 << 24) {
            j->repeat *= 2;
            continue;
        }
        best = seconds / j->repeat < best ? seconds / j->repeat : best;
        tries++;
    }
    return best;
}

static void report(const job *j, const shape *s, int threads, const floors *f, double seconds, FILE *csv)
{
    double flops = 2.0 * s->n_out * s->n_in * j->n_tok, bytes = 2.0 * s->n_out * s->n_in;
    double by_flops = flops / f->flops, by_read = bytes / f->read;
    double least = by_flops > by_read ? by_flops : by_read;
    const char *bound = by_flops > by_read ? "flops" : "read";
    printf("  %-5s %6d x %4d  %4d rows  %10.1f us  %8.1f GFLOP/s  %6.1f GB/s  %5.1f %% of %s\n", s->name,
           s->n_out, s->n_in, j->n_tok, seconds * 1e6, flops / seconds * 1e-9, bytes / seconds * 1e-9,
           100 * least / seconds, bound);
    if (csv)
        fprintf(csv, "%s,%d,%s,%d,%d,%d,%.9f,%.3f,%.3f,%s,%.4f\n", j->op->name, threads, s->name, s->n_out,
                s->n_in, j->n_tok, seconds, flops / seconds * 1e-9, bytes / seconds * 1e-9, bound,
                least / seconds);
}

static int bench_shape(const cake_kernels *op, const shape *s, int threads, const floors *f, FILE *csv)
{
    job j = {.op = op, .w = {.n_out = s->n_out, .n_in = s->n_in, .dtype = CAKE_BF16}};
    cake_arena arena;
    j.bytes = op->weight_bytes(CAKE_BF16, s->n_out, s->n_in);
    j.n_copy = (int)((BYTES + j.bytes - 1) / j.bytes);
    size_t x = cake_arena_round((size_t)ROWS * (size_t)s->n_in * sizeof(float));
    size_t out = cake_arena_round((size_t)ROWS * (size_t)s->n_out * sizeof(float));
    if (cake_arena_open(&arena, "bench", j.bytes * (size_t)j.n_copy + x + out))
        return 1;
    j.w.data = cake_arena_take(&arena, j.bytes * (size_t)j.n_copy);
    j.x = cake_arena_take(&arena, x);
    j.out = cake_arena_take(&arena, out);
    for (int64_t i = 0; i < (int64_t)ROWS * s->n_in; i++)
        j.x[i] = (float)((i * 7919 + i / 1024) % 2003 - 1001) * 0x1p-10f;
    pack_all(&j);
    int wrong = 0;
    for (int r = 0; r < COUNT(row_counts) && !wrong; r++) {
        j.n_tok = row_counts[r];
        wrong = !same_as_ref(&j, threads);
        if (wrong)
            fprintf(stderr, "bench: %s, %d rows: %s does not have the bits of plain C; not timed\n", s->name,
                    j.n_tok, op->name);
        else
            report(&j, s, threads, f, seconds_of(&j, threads), csv);
        fflush(stdout);
    }
    cake_arena_close(&arena);
    return wrong;
}

static int bench_threads(const cake_kernels *op, int threads, FILE *csv)
{
    floors f = {floor_flops(op->name, threads), floor_read(op->name, threads)};
    if (f.read <= 0)
        return 1;
    printf("%s, %d threads: %.1f GFLOP/s, %.1f GB/s\n", op->name, threads, f.flops * 1e-9, f.read * 1e-9);
    if (csv)
        fprintf(csv, "%s,%d,floor,,,,,%.3f,%.3f,,1\n", op->name, threads, f.flops * 1e-9, f.read * 1e-9);
    int wrong = 0;
    for (int i = 0; i < COUNT(shapes); i++)
        wrong |= bench_shape(op, &shapes[i], threads, &f, csv);
    return wrong;
}

int main(int argc, char **argv)
{
    int level = argc > 1 ? cake_kernels_level(argv[1]) : cake_kernels_best();
    const cake_kernels *op = cake_kernels_at(level);
    int only = argc > 2 ? atoi(argv[2]) : 0, cpus = (int)sysconf(_SC_NPROCESSORS_ONLN), wrong = 0;
    if (!op || only < 0 || argc > 4) {
        fprintf(stderr, "usage: bench/kernels [ISA [THREADS [CSV]]]; this CPU's best ISA is %s\n",
                cake_kernels_at(cake_kernels_best())->name);
        return 2;
    }
    FILE *csv = argc > 3 ? fopen(argv[3], "w") : NULL;
    if (argc > 3 && !csv) {
        perror(argv[3]);
        return 1;
    }
    if (csv)
        fprintf(csv, "isa,threads,shape,n_out,n_in,rows,seconds,gflops,gbytes,bound,share\n");
    if (only)
        wrong = bench_threads(op, only, csv);
    else
        for (int threads = 1; threads <= cpus;
             threads = threads < cpus && threads * 2 > cpus ? cpus : threads * 2)
            wrong |= bench_threads(op, threads, csv);
    if (csv && fclose(csv)) {
        perror(argv[3]);
        return 1;
    }
    return wrong;
}
