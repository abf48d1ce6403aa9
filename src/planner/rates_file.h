/* SPDX-License-Identifier: Apache-2.0
 *
 * --rates: speeds that `bench peak -o FILE` measured, used instead of measuring now.
 */
#ifndef CAKE_PLANNER_RATES_FILE_H
#define CAKE_PLANNER_RATES_FILE_H

#include "base/err.h"
#include "kernels/peak.h"
#include "placement/rates.h"

/* Fills flops and bytes of n ranks, whose host and cpus are set, from JSON lines of `bench peak`. A line
 * counts if it has the kind of products and the isa (or is of memory reads), as many threads as the rank has
 * cpus, and the rank's host; a file of a single host serves all hosts. Of equal lines the last one counts.
 * *threads: the maximum that any such line has. */
cake_err cake_rates_file_read(const char *path, const char *isa, cake_peak_kind products, int n,
                              cake_rate *rate, int *threads);

#endif
