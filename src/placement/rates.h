/* SPDX-License-Identifier: Apache-2.0
 *
 * Speeds of ranks, for plans. Pure: measured numbers in, noise-free numbers out.
 *
 * Measurements vary from run to run, but a plan should not. So speeds that differ by no more than noise count
 * as equal, and only machines of different kinds get different slices.
 */
#ifndef CAKE_PLACEMENT_RATES_H
#define CAKE_PLACEMENT_RATES_H

#include <stdbool.h>

/* Speed of a rank. */
typedef struct cake_rate {
    char host[64];
    int cpus;            /* that it computes on */
    double flops, bytes; /* operations and bytes per second; 0: not measured */
} cake_rate;

/* True if n ranks are of one kind: on one host, with equal numbers of cpus. */
bool cake_rates_same(int n, const cake_rate *rate);

/* Removes noise from n rates. Ranks of one kind get their median; then all within 15 % of the fastest get the
 * median of these, and so on with the rest. If one rank has not measured, all become 0. */
void cake_rates_normalize(int n, cake_rate *rate);

/* Operations in the time of one byte: the median of all ranks, rounded to 1/2, 16 or 512, so that it does not
 * change from run to run. 0 if nothing was measured. */
double cake_rates_balance(int n, const cake_rate *rate);

#endif
