/* SPDX-License-Identifier: Apache-2.0
 *
 * --rates: what `bench peak -o FILE` measured, instead of measuring it now.
 */
#ifndef CAKE_PLANNER_RATES_FILE_H
#define CAKE_PLANNER_RATES_FILE_H

#include "base/err.h"
#include "kernels/peak.h"
#include "place/rates.h"

/* Fills flops and bytes of n ranks, whose hosts and cpus are known, from JSON lines of `bench`: products of
 * that kind by that instruction set, and reading, by as many threads on the rank's host; a file of one host
 * serves all. Of lines that say the same the last one counts, others are passed over. *threads: the most that
 * any such line is of. */
cake_err cake_rates_file_read(const char *path, const char *isa, cake_peak_kind products, int n,
                              cake_rate *rate, int *threads);

#endif
