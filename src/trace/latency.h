/* SPDX-License-Identifier: Apache-2.0
 *
 * Spans of time enter, percentiles leave: of all, or of a sample where there are many.
 */
#ifndef CAKE_TRACE_LATENCY_H
#define CAKE_TRACE_LATENCY_H

#include <stdint.h>

typedef struct cake_latency {
    float *value; /* milliseconds */
    int64_t n, cap;
    uint64_t seen; /* how many there were; beyond cap a uniform sample of them is kept */
} cake_latency;

void cake_latency_add(cake_latency *times, double seconds);
double cake_latency_percentile(cake_latency *times,
                               int percent); /* milliseconds; NaN: there are none. Sorts */
void cake_latency_free(cake_latency *times);

#endif
