/* SPDX-License-Identifier: Apache-2.0
 *
 * Percentiles of latencies: exact, or from a uniform sample if there are very many.
 */
#ifndef CAKE_TRACE_LATENCY_H
#define CAKE_TRACE_LATENCY_H

#include <stdint.h>

typedef struct cake_latency {
    float *value; /* milliseconds */
    int64_t n, cap;
    uint64_t seen; /* values added; value has a sample of them if there were too many */
} cake_latency;

void cake_latency_add(cake_latency *times, double seconds);
/* Milliseconds; NaN: no values. Sorts them. */
double cake_latency_percentile(cake_latency *times, int percent);
void cake_latency_free(cake_latency *times);

#endif
