/* SPDX-License-Identifier: Apache-2.0
 *
 * Fills the options struct of each module from the command line: nothing below src/run sees all options.
 * Strings stay owned by the options.
 */
#ifndef CAKE_RUN_FROM_OPTIONS_H
#define CAKE_RUN_FROM_OPTIONS_H

#include "link/comm.h"
#include "options/options.h"
#include "planner/rank.h"
#include "request/prepare.h"

/* n_request stays 0, see cake_expected_requests. */
cake_rank_options cake_rank_options_from(const cake_options *options);
cake_prepare_options cake_prepare_options_from(const cake_options *options);

/* Estimates the number of requests from the size and the start of the input; 0: unknown. */
int64_t cake_expected_requests(const cake_options *options);

/* If -m names a model in the cache of `pull`, sets options->model to its snapshot and options->pulled to its
 * origin. If the model is in bundles, sets options->model to the directory of this rank's bundle and
 * options->staged to its origin. All ranks call, before anything is read. */
cake_err cake_options_locate_model(cake_options *options, const cake_comm *world);

#endif
