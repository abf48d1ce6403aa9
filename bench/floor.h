/* SPDX-License-Identifier: Apache-2.0
 *
 * What the machine can do at most: the measures that kernels are held against.
 */
#ifndef CAKE_BENCH_FLOOR_H
#define CAKE_BENCH_FLOOR_H

#include "bench/bench.h"
#include "kernels/peak.h"

typedef enum floor_kind {
    FLOOR_F32 = CAKE_PEAK_F32,   /* operations a second: float32 multiply-adds, two each */
    FLOOR_BF16 = CAKE_PEAK_BF16, /* the same in pairs of BF16 */
    FLOOR_INT8 = CAKE_PEAK_INT8, /* the same in fours of bytes with int32 sums */
    FLOOR_READ = CAKE_PEAK_READ, /* bytes a second, from memory */
    FLOOR_COPY = CAKE_PEAK_COPY, /* bytes a second, read and written, each counted */
    FLOOR_KINDS
} floor_kind;

/* On so many threads, by the widest vectors that the kernel table may use; 0: its instructions have no such
 * thing (or there is no memory, which is said). Measured, or what was measured a moment ago. */
double floor_of(const cake_bench *bench, floor_kind kind, int threads);

/* Says bytes or operations a second, and their share of that floor. */
void floor_say_bytes(cake_bench *bench, const char *name, int threads, floor_kind kind, double bytes,
                     double seconds);
void floor_say_flops(cake_bench *bench, const char *name, int threads, floor_kind kind, double flops,
                     double seconds);
const char *floor_name(floor_kind kind); /* the measurement's: "peak.read" */

/* Seconds from one load to the next that depends on it, far from any cache; 0: no memory, which is said. */
double floor_latency(const cake_bench *bench);

#endif
