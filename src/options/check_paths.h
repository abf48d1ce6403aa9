/* SPDX-License-Identifier: Apache-2.0
 *
 * What is written must not destroy what is read.
 */
#ifndef CAKE_OPTIONS_CHECK_PATHS_H
#define CAKE_OPTIONS_CHECK_PATHS_H

#include "base/err.h"
#include "link/comm.h"
#include "options/options.h"

/* Says so if two of the files that the options name are one, or one that is written is a file of the model or
 * what a run has left: results are written over by run and merge alone, where --force says so.
 * Nothing is opened or changed. */
cake_err cake_paths_check(const cake_options *options);
/* What was printed on standard output has to arrive: err, or what is wrong with it. All ranks call. */
cake_err cake_paths_flush(const cake_comm *world, cake_err err);

#endif
