/* SPDX-License-Identifier: Apache-2.0
 *
 * `cake-mpi bench`: named measurements. A measurement is a row of a table of its file; it says what it found
 * with cake_bench_say, once for each thing it found, and one printer makes text, CSV or JSON of that.
 *
 * All ranks take each measurement at the same time, so that what they share (a memory bus, caches, a clock)
 * is shared as in a run.
 */
#ifndef CAKE_BENCH_BENCH_H
#define CAKE_BENCH_BENCH_H

#include <stdbool.h>

#include "kernels/kernels.h"
#include "link/comm.h"
#include "options/options.h"

typedef struct cake_bench cake_bench;

typedef struct cake_case {
    const char *name; /* group.what */
    const char *what; /* one line for the list */
    cake_err (*run)(cake_bench *bench, const struct cake_case *self);
    int kind; /* means something to run */
} cake_case;

/* One table per file, ended by a row without a name. */
extern const cake_case cake_cases_peak[]; /* the floors */
extern const cake_case cake_cases_linear[];
extern const cake_case cake_cases_attend[];
extern const cake_case cake_cases_delta[];
extern const cake_case cake_cases_rows[];
extern const cake_case cake_cases_scores[];
extern const cake_case cake_cases_links[];
extern const cake_case cake_cases_text[];
extern const cake_case cake_cases_throughput[];
extern const cake_case cake_cases_pipeline[];

struct cake_bench {
    const cake_comm *world;
    const cake_options *options;
    const cake_kernels *kernels; /* what --isa says; results name it */
    int threads;                 /* the most that are tried */
    bool smoke;                  /* once, small: whether it works, not how fast it is */
    const char *lacks;           /* why the measurement under way finds nothing */
    struct cake_result *result;  /* of this rank and the measurement under way */
    int n;
};

/* Adds a result: value in unit ("GFLOP/s", "GB/s", "ns", ...); peer: the other rank, or -1; share: of the
 * floor that binds it, or 0 if it is one itself. */
void cake_bench_say(cake_bench *bench, const char *name, int threads, int peer, double value,
                    const char *unit, double share, const char *bound);

/* Calls work(exec, arg) on a team until it is sure about the time one call takes: the least of several tries,
 * in seconds. */
double cake_bench_time(const cake_bench *bench, int threads, void (*work)(const cake_exec *exec, void *arg),
                       void *arg);

/* 1, 2, 4, ... up to bench->threads; 0 ends it. */
int cake_bench_more(const cake_bench *bench, int threads);

/* The command. The exit code that all ranks agreed on. */
cake_err cake_bench_run(const cake_options *options, const cake_comm *world);

#endif
