/* SPDX-License-Identifier: Apache-2.0
 *
 * No output file may destroy an input file, a file of the model or the results of a run.
 */
#ifndef CAKE_OPTIONS_CHECK_PATHS_H
#define CAKE_OPTIONS_CHECK_PATHS_H

#include "base/err.h"
#include "link/comm.h"
#include "options/options.h"

/* CAKE_ERR_USAGE, with a message, if two files that the options name are the same, or if an output file is a
 * file of the model or belongs to the results of a run; only run and merge with --force overwrite results. */
cake_err cake_paths_check(const cake_options *options);
/* Flushes standard output. Returns err, or CAKE_ERR_FATAL after a message if that fails. All ranks call. */
cake_err cake_paths_flush(const cake_comm *world, cake_err err);

#endif
