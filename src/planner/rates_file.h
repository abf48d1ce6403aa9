/* SPDX-License-Identifier: Apache-2.0
 *
 * --rates: speeds that `bench peak -o FILE` measured, used instead of measuring now; --keep-rates: those that
 * an earlier run measured.
 */
#ifndef CAKE_PLANNER_RATES_FILE_H
#define CAKE_PLANNER_RATES_FILE_H

#include <stdbool.h>

#include "base/err.h"
#include "kernels/peak.h"
#include "placement/rates.h"

/* Fills flops and bytes of n ranks, whose host and cpus are set, from JSON lines of `bench peak`. A line
 * counts if it has the kind of products and the isa (or is of memory reads), as many threads as the rank has
 * cpus, and the rank's host; a file of a single host serves all hosts. Of equal lines the last one counts.
 * *threads: the maximum that any such line has. */
cake_err cake_rates_file_read(const char *path, const char *isa, cake_peak_kind products, int n,
                              cake_rate *rate, int *threads);
/* The same of a file that runs keep: a line serves its own host only. False in *all, and rates of 0: some are
 * missing, or there is no file. */
cake_err cake_rates_file_recall(const char *path, const char *isa, cake_peak_kind products, int n,
                                cake_rate *rate, bool *all);
/* Adds those of n measured rates that such a file lacks; the file is replaced as a whole.
 * That it cannot be written is only a warning. */
cake_err cake_rates_file_keep(const char *path, const char *isa, cake_peak_kind products, int n,
                              const cake_rate *rate);

#endif
