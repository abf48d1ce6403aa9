/* SPDX-License-Identifier: Apache-2.0
 *
 * The roofline of a run (Williams, Waterman and Patterson 2009): what was computed, sorted by operations a
 * byte, and the time that it takes at least where arithmetic and memory are as fast as their peaks. Peaks are
 * measured when the work is over, so the work is kept in bins in which one of the two binds.
 */
#ifndef CAKE_KERNELS_ROOFLINE_H
#define CAKE_KERNELS_ROOFLINE_H

/* The work of one wave, or of many. bytes: those that have to come from memory or go there. */
typedef struct cake_flops_bytes {
    double flops, bytes;
} cake_flops_bytes;

#define CAKE_ROOFLINE_BINS 64

/* Zeros are empty. */
typedef struct cake_roofline {
    cake_flops_bytes bin[CAKE_ROOFLINE_BINS]; /* a quarter of an octave each, from 1/16 operation a byte on */
} cake_roofline;

void cake_roofline_add(cake_roofline *roof, cake_flops_bytes work);
void cake_roofline_merge(cake_roofline *roof, const cake_roofline *other);
cake_flops_bytes cake_roofline_sum(const cake_roofline *roof);
/* The least seconds that the work takes at so many operations and bytes a second (both above 0); *reading:
 * those of them in which memory binds. */
double cake_roofline_seconds(const cake_roofline *roof, double peak_flops, double peak_bandwidth,
                             double *reading);

#endif
