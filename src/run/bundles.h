/* SPDX-License-Identifier: Apache-2.0
 *
 * -m where it leads to bundles (`stage`): each rank reads its own, and the plan is the one they were made
 * for.
 */
#ifndef CAKE_RUN_BUNDLES_H
#define CAKE_RUN_BUNDLES_H

#include "link/world.h"
#include "model/bundle.h"
#include "place/plan.h"
#include "run/options.h"

/* All ranks call, before anything is read. If the model is in bundles options->model becomes the directory of
 * this rank's, and options->staged tells of it; their files and their number are checked. */
cake_err cake_bundles_find(cake_options *options, const cake_world *world);

/* The plan that the bundles were made for (owned by the caller), or with --topology whether it is that one:
 * *plan is then what the file says. All ranks call; rank 0 says what is wrong. */
cake_err cake_bundles_plan(const cake_options *options, const cake_world *world, const cake_bundle *bundle,
                           cake_plan *plan);

/* "0-3 | 4-7": the layers of each rank, of many the first ones. Appended. */
void cake_bundles_layers(const cake_plan *plan, cake_buf *out);

#endif
