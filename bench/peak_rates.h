/* SPDX-License-Identifier: Apache-2.0
 *
 * Measured peaks of the machine: kernels report their fraction of them.
 */
#ifndef CAKE_BENCH_PEAK_RATES_H
#define CAKE_BENCH_PEAK_RATES_H

#include "bench/bench.h"
#include "kernels/peak.h"

typedef enum peak_kind {
    PEAK_F32 = CAKE_PEAK_F32,   /* operations per second: float32 multiply-adds count as two */
    PEAK_BF16 = CAKE_PEAK_BF16, /* with pairs of BF16 */
    PEAK_INT8 = CAKE_PEAK_INT8, /* with fours of bytes and int32 sums */
    PEAK_READ = CAKE_PEAK_READ, /* bytes per second read from memory */
    PEAK_COPY = CAKE_PEAK_COPY, /* bytes per second, read plus written */
    PEAK_KINDS
} peak_kind;

/* Peak on `threads` threads with the widest vectors of the kernel table; 0: the instruction set lacks it, or
 * no memory (reported). A value measured a moment ago is reused. */
double peak_rate(const cake_bench *bench, peak_kind kind, int threads);

/* Report bytes or operations per second and their fraction of a peak. */
void peak_report_bytes(cake_bench *bench, const char *name, int threads, peak_kind kind, double bytes,
                       double seconds);
void peak_report_flops(cake_bench *bench, const char *name, int threads, peak_kind kind, double flops,
                       double seconds);
/* The roofline (Williams et al. 2009): operations, or bytes read, whichever takes longer at its peak. kind:
 * of the operations. */
void peak_report_roofline(cake_bench *bench, const char *name, int threads, peak_kind kind, double flops,
                          double bytes, double seconds);
const char *peak_name(peak_kind kind); /* the measurement's: "peak.read" */

/* Seconds of a load that depends on the one before, without cache hits; 0: no memory (reported). */
double peak_latency(const cake_bench *bench);

#endif
