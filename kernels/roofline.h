/* SPDX-License-Identifier: Apache-2.0
 *
 * The roofline of a run (Williams, Waterman and Patterson 2009): the work done, binned by operations per
 * byte, and the min time for it at peak rates of arithmetic and memory. Peaks are measured after the work, so
 * the bins are kept until then.
 */
#ifndef CAKE_KERNELS_ROOFLINE_H
#define CAKE_KERNELS_ROOFLINE_H

/* The work of one or more waves. bytes: traffic to and from memory. */
typedef struct cake_flops_bytes {
    double flops, bytes;
} cake_flops_bytes;

#define CAKE_ROOFLINE_BINS 64

/* Zero-initialised: empty. */
typedef struct cake_roofline {
    cake_flops_bytes bin[CAKE_ROOFLINE_BINS]; /* a quarter of an octave each, from 1/16 operation per byte */
} cake_roofline;

void cake_roofline_add(cake_roofline *roofline, cake_flops_bytes work);
void cake_roofline_merge(cake_roofline *roofline, const cake_roofline *other);
cake_flops_bytes cake_roofline_sum(const cake_roofline *roofline);
/* Min seconds for the work at these rates (both above 0); *reading: the part of them that is bound by
 * memory. */
double cake_roofline_seconds(const cake_roofline *roofline, double peak_flops, double peak_bandwidth,
                             double *reading);

#endif
