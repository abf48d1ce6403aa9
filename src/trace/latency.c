/* SPDX-License-Identifier: Apache-2.0
 *
 * In: latencies in seconds. Out: percentiles in milliseconds. Values beyond MAX_KEPT are sampled.
 */
#include "trace/latency.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

void cake_latency_add(cake_latency *t, double seconds)
{
    enum { MAX_KEPT = 1 << 16 };
    int64_t at = t->n;
    t->seen++;
    if (t->n == MAX_KEPT) { /* reservoir sampling (Vitter 1985); a fixed generator suffices for a report */
        uint64_t z = t->seen * 0x9E3779B97F4A7C15u;
        z = (z ^ z >> 29) * 0xBF58476D1CE4E5B9u;
        at = (int64_t)((z ^ z >> 32) % t->seen);
        if (at >= MAX_KEPT)
            return;
    } else {
        CAKE_RESERVE(t->value, t->n, t->cap);
        t->n++;
    }
    t->value[at] = (float)(1e3 * seconds);
}

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

double cake_latency_percentile(cake_latency *t, int percent)
{
    if (!t->n) /* value may be NULL, which qsort forbids */
        return NAN;
    qsort(t->value, (size_t)t->n, sizeof *t->value, ascending);
    return (double)t->value[t->n * percent / 100];
}

void cake_latency_free(cake_latency *t)
{
    free(t->value);
    *t = (cake_latency){0};
}
