/* SPDX-License-Identifier: Apache-2.0
 *
 * -m where it leads to bundles (`stage`): each rank reads its own, and the plan is the one they were made
 * for.
 */
#ifndef CAKE_BUNDLE_LOCATE_H
#define CAKE_BUNDLE_LOCATE_H

#include "link/comm.h"
#include "model/bundle.h"
#include "options/options.h"
#include "place/plan.h"

/* All ranks call, before anything is read. If the model is in bundles options->model becomes the directory of
 * this rank's, and options->staged tells of it; their files and their number are checked. */
cake_err cake_bundle_locate(cake_options *options, const cake_comm *world);

#endif
