/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole runs of a model, or of a shape with random weights, through the real pipeline.
 */
#ifndef CAKE_BENCH_THROUGHPUT_H
#define CAKE_BENCH_THROUGHPUT_H

#include "bench/bench.h"
#include "bench/cost.h"
#include "bench/source.h"
#include "planner/rank.h"

/* Plans and loads the model of -m or --shape (else `shape`) for a load; collective. cake_rank_close in any
 * case. */
cake_err throughput_open(cake_bench *bench, const char *shape, const cost_load *load, cake_rank *me);
/* One run, from the first wave to the last; *stats: of this rank. On rank 0, each of them may be NULL: steady
 * is filled, *per_pass is how many tokens a pass of a sequence generates, or 0 if nothing was drafted. */
cake_err throughput_run(const cake_bench *bench, const cake_rank *me, const cost_load *load,
                        source_steady *steady, cake_stage_stats *stats, double *per_pass);
/* Peaks of this rank's threads with the stage's kernels and weights; collective. */
cost_rates throughput_rates(cake_bench *bench, const cake_rank *me);

#endif
