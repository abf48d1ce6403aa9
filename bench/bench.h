/* SPDX-License-Identifier: Apache-2.0
 *
 * `cake-mpi bench`: named measurements. Each is a row of a table in its file; it reports results by
 * cake_bench_report, and bench.c prints them as text, CSV or JSON.
 *
 * All ranks take each measurement at the same time, so that they share memory bus, caches and clock as in a
 * run.
 */
#ifndef CAKE_BENCH_BENCH_H
#define CAKE_BENCH_BENCH_H

#include <stdbool.h>

#include "kernels/kernels.h"
#include "link/comm.h"
#include "options/options.h"

typedef struct cake_bench cake_bench;

typedef struct cake_case {
    const char *name; /* suite.what */
    const char *what; /* one line for the list */
    cake_err (*run)(cake_bench *bench, const struct cake_case *self);
    int kind; /* parameter of run */
} cake_case;

/* One table per file, ended by a row without a name. */
extern const cake_case cake_cases_peak[];
extern const cake_case cake_cases_linear[];
extern const cake_case cake_cases_attend[];
extern const cake_case cake_cases_experts[];
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
    const cake_kernels *kernels; /* by --isa, or the open GPU's; results name it */
    int threads;                 /* maximum */
    const cake_kernels *of_cpu;  /* kernels and threads while a GPU is open; else NULL */
    int threads_of_cpu;
    bool smoke;                 /* run once and small, to test only that it works */
    const char *lacks;          /* what the current measurement needs if it has no results */
    struct cake_result *result; /* of this rank and the current measurement */
    int n;
};

/* The kernels that a measurement of kernels takes: those of --isa, or with --device cuda those of this rank's
 * GPU, which is open from then on, with one thread. always: a GPU's without --device cuda, too. CAKE_END:
 * there is no GPU, and bench->lacks says why. */
cake_err cake_bench_open_kernels(cake_bench *bench, bool always);
void cake_bench_close_kernels(cake_bench *bench);

/* Adds a result: value in unit ("GFLOP/s", "GB/s", "ns", ...); peer: the other rank, or -1; share: fraction
 * of the peak that limits it, or 0 if it is a peak itself. */
void cake_bench_report(cake_bench *bench, const char *name, int threads, int peer, double value,
                       const char *unit, double share, const char *bound);

/* Calls work(exec, arg) on a team repeatedly, and waits for the GPU at the end of each try; returns the
 * seconds of one call, the minimum of several tries. */
double cake_bench_time(const cake_bench *bench, int threads, void (*work)(const cake_exec *exec, void *arg),
                       void *arg);

/* The next of 1, 2, 4, ... up to bench->threads; 0 after the last. */
int cake_bench_next_threads(const cake_bench *bench, int threads);

/* The command. Returns the status that all ranks agreed on. */
cake_err cake_bench_run(const cake_options *options, const cake_comm *world);

#endif
