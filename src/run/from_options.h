/* SPDX-License-Identifier: Apache-2.0
 *
 * Each module takes a few values of the options, in a struct of its own. These functions fill the structs:
 * nothing below src/run sees the options as a whole. Strings stay the options'.
 */
#ifndef CAKE_RUN_FROM_OPTIONS_H
#define CAKE_RUN_FROM_OPTIONS_H

#include "link/comm.h"
#include "options/options.h"
#include "planner/rank.h"
#include "request/prepare.h"

/* n_request is 0, see cake_expected_requests. */
cake_rank_options cake_rank_options_from(const cake_options *options);
cake_prepare_options cake_prepare_options_from(const cake_options *options);

/* How many requests the input seems to have, from its size and its beginning; 0: unknown. */
int64_t cake_expected_requests(const cake_options *options);

/* All ranks call, before anything is read. If the model is in bundles, options->model becomes the
 * directory of this rank's bundle, and options->staged says where that comes from. */
cake_err cake_options_locate_model(cake_options *options, const cake_comm *world);

#endif
