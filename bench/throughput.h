/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole runs: a model, or a shape with made-up weights, through the real pipeline.
 */
#ifndef CAKE_BENCH_THROUGHPUT_H
#define CAKE_BENCH_THROUGHPUT_H

#include "bench/bench.h"
#include "bench/cost.h"
#include "bench/source.h"
#include "planner/rank.h"

/* Plans and loads what -m or --shape says (else `shape`) for a load; all ranks. cake_rank_close in any
 * case. */
cake_err throughput_open(cake_bench *bench, const char *shape, const cost_load *load, cake_rank *me);
/* One run, from the first wave to the last: what this rank did. steady: of rank 0, filled, or NULL. */
cake_err throughput_run(const cake_bench *bench, const cake_rank *me, const cost_load *load,
                        source_steady *steady, cake_stage_stats *stats);
/* What this rank's threads can do at most with the stage's kernels and weights; all ranks together. */
cost_rates throughput_rates(cake_bench *bench, const cake_rank *me);

#endif
