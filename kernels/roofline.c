/* SPDX-License-Identifier: Apache-2.0
 *
 * In: operations and bytes of pieces of work. Out: the min time for them at given peak rates. Invariant: work
 * is kept in bins by operations per byte, so that sums still tell whether arithmetic or memory binds.
 */
#include "kernels/roofline.h"

#include <math.h>

#define BINS_PER_OCTAVE 4
#define LOWEST          (-4) /* log2 of operations per byte */

void cake_roofline_add(cake_roofline *roofline, cake_flops_bytes work)
{
    int at = work.flops > 0 ? CAKE_ROOFLINE_BINS - 1 : 0;
    if (work.flops > 0 && work.bytes > 0) {
        double octaves = log2(work.flops / work.bytes) - LOWEST;
        at = octaves > 0 ? (int)fmin(octaves * BINS_PER_OCTAVE, CAKE_ROOFLINE_BINS - 1) : 0;
    }
    roofline->bin[at].flops += work.flops;
    roofline->bin[at].bytes += work.bytes;
}

void cake_roofline_merge(cake_roofline *roofline, const cake_roofline *other)
{
    for (int i = 0; i < CAKE_ROOFLINE_BINS; i++) {
        roofline->bin[i].flops += other->bin[i].flops;
        roofline->bin[i].bytes += other->bin[i].bytes;
    }
}

cake_flops_bytes cake_roofline_sum(const cake_roofline *roofline)
{
    cake_flops_bytes sum = {0, 0};
    for (int i = 0; i < CAKE_ROOFLINE_BINS; i++) {
        sum.flops += roofline->bin[i].flops;
        sum.bytes += roofline->bin[i].bytes;
    }
    return sum;
}

double cake_roofline_seconds(const cake_roofline *roofline, double peak_flops, double peak_bandwidth,
                             double *reading)
{
    double all = 0;
    *reading = 0;
    for (int i = 0; i < CAKE_ROOFLINE_BINS; i++) {
        double computing = roofline->bin[i].flops / peak_flops,
               moving = roofline->bin[i].bytes / peak_bandwidth;
        all += fmax(computing, moving);
        *reading += moving > computing ? moving : 0;
    }
    return all;
}
