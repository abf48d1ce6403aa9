/* SPDX-License-Identifier: Apache-2.0
 *
 * What ranks do in a second, as plans go by it. Pure: measured numbers in, settled ones out.
 *
 * A measurement is never the same twice, and a plan should be: what differs by less than a machine differs
 * from itself counts as equal, so that only machines of different kinds get different slices.
 */
#ifndef CAKE_PLACE_RATES_H
#define CAKE_PLACE_RATES_H

#include <stdbool.h>

/* Of a rank. */
typedef struct cake_rate {
    char host[64];
    int cpus;            /* that it computes on */
    double flops, bytes; /* operations and bytes a second; 0: not measured */
} cake_rate;

/* Whether n ranks are of one kind: of one host, with as many cpus each. */
bool cake_rates_same(int n, const cake_rate *rate);

/* Takes noise out of n ranks' rates: ranks of a host with as many cpus have their median; of what is then
 * within 15 % of the fastest all have the median of these, and so on with those that are left. If one rank
 * has not measured, none has: all are 0. */
void cake_rates_normalize(int n, cake_rate *rate);

/* Operations that take as long as a byte: the median of all ranks, rounded to 1/2, 16 or 512, so that it
 * stays what it is from run to run. 0 where nothing was measured. */
double cake_rates_balance(int n, const cake_rate *rate);

#endif
