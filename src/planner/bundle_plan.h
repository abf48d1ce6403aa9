/* SPDX-License-Identifier: Apache-2.0
 *
 * Which rank has which layers, as bundles of a staged model say it.
 */
#ifndef CAKE_PLANNER_BUNDLE_PLAN_H
#define CAKE_PLANNER_BUNDLE_PLAN_H

#include "link/comm.h"
#include "model/bundle.h"
#include "place/plan.h"

/* The plan that the bundles were made for (owned by the caller), or with --topology whether it is that one:
 * *plan is then what the file says. given: the value of -m. All ranks call; rank 0 says what is wrong. */
cake_err cake_bundle_plan_take(const char *topology, const char *given, const cake_comm *world,
                               const cake_bundle *bundle, cake_plan *plan);

/* "0-3 | 4-7": the layers of each rank, of many the first ones. Appended. */
void cake_bundle_plan_layers(const cake_plan *plan, cake_buf *out);

#endif
