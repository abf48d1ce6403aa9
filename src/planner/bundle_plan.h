/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan that a staged model was made for.
 */
#ifndef CAKE_PLANNER_BUNDLE_PLAN_H
#define CAKE_PLANNER_BUNDLE_PLAN_H

#include "link/comm.h"
#include "model/bundle.h"
#include "placement/plan.h"

/* Sets *plan to the plan of the bundles (owned by the caller). With --topology it keeps *plan, the file's,
 * and fails if the bundles have another one. given: the value of -m, for messages. All ranks call; one of
 * them logs. */
cake_err cake_bundle_plan_take(const char *topology_path, const char *given, const cake_comm *world,
                               const cake_bundle *bundle, cake_plan *plan);

/* Appends "0-3 | 4-7", the layers of each rank; of many ranks only the first ones. */
void cake_bundle_plan_layers(const cake_plan *plan, cake_buf *out);

#endif
