/* SPDX-License-Identifier: Apache-2.0
 *
 * Spans of time enter, percentiles leave: of all, or of a sample where there are many.
 */
#ifndef CAKE_TRACE_TIMES_H
#define CAKE_TRACE_TIMES_H

#include <stdint.h>

typedef struct cake_times {
    float *value; /* milliseconds */
    int64_t n, cap;
    uint64_t seen; /* how many there were; beyond cap a uniform sample of them is kept */
} cake_times;

void cake_times_add(cake_times *times, double seconds);
double cake_times_percentile(cake_times *times, int percent); /* milliseconds; NaN: there are none. Sorts */
void cake_times_free(cake_times *times);

#endif
