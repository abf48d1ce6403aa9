/* SPDX-License-Identifier: Apache-2.0
 *
 * The roofline of a run (Williams, Waterman and Patterson 2009): what was computed, sorted by operations a
 * byte, and the time that it takes at least where arithmetic and memory are as fast as their peaks. Peaks are
 * measured when the work is over, so the work is kept in bins in which one of the two binds.
 */
#ifndef CAKE_KERNELS_ROOF_H
#define CAKE_KERNELS_ROOF_H

/* The work of one wave, or of many. bytes: those that have to come from memory or go there. */
typedef struct cake_effort {
    double flops, bytes;
} cake_effort;

#define CAKE_ROOF_BINS 64

/* Zeros are empty. */
typedef struct cake_roof {
    cake_effort bin[CAKE_ROOF_BINS]; /* a quarter of an octave each, from 1/16 operation a byte on */
} cake_roof;

void cake_roof_add(cake_roof *roof, cake_effort work);
void cake_roof_merge(cake_roof *roof, const cake_roof *other);
cake_effort cake_roof_sum(const cake_roof *roof);
/* The least seconds that the work takes at so many operations and bytes a second (both above 0); *reading:
 * those of them in which memory binds. */
double cake_roof_seconds(const cake_roof *roof, double peak_flops, double peak_bandwidth, double *reading);

#endif
