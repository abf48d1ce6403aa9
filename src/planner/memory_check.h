/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that a plan fits into the memory of all ranks.
 */
#ifndef CAKE_PLANNER_MEMORY_CHECK_H
#define CAKE_PLANNER_MEMORY_CHECK_H

#include "planner/rank.h"

/* Decides the waves and the KV pages; fails before loading if the model does not fit. All ranks call. */
cake_err cake_memory_check(const cake_comm *world, cake_rank *rank);

#endif
