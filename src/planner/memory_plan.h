/* SPDX-License-Identifier: Apache-2.0
 *
 * What a plan takes of memory, and what waves and KV pages there is room for.
 */
#ifndef CAKE_PLANNER_MEMORY_PLAN_H
#define CAKE_PLANNER_MEMORY_PLAN_H

#include "options/options.h"
#include "planner/stage.h"

/* A hop's slice, as waves, pages and threads of this rank are. */
cake_slice_shape cake_memplan_slice(const cake_stage *stage, const cake_hop *hop);
/* Positions of a sequence for which there may be pages, in the memory that the plan's ranks have. */
int cake_memplan_max_positions(const cake_stage *stage);
/* What lanes of the plan's stages hold, `most` sequences each at most if that is not 0, and of which KV
 * groups there are pages. Pages are not counted yet. */
void cake_memplan_batch_limits(const cake_options *options, cake_stage *stage, int most);
/* Pages of each group [n_group] beyond which there is nothing to keep in them. */
void cake_memplan_max_pages(const cake_stage *stage, int *most);
/* What a rank of the plan, with so many threads, has in memory (its GPU's, if it has one) beside weights,
 * pages and states. */
int64_t cake_memplan_overhead_bytes(const cake_stage *stage, int rank, int n_thread);
/* The same of all memories, without page tables, which count as KV cache; of any plan with the waves of this
 * one. */
int64_t cake_memplan_buffer_bytes(const cake_stage *stage, const cake_plan *plan, int rank, int n_thread);

/* All ranks together: decides the waves and the KV pages, and says before loading if the model does not
 * fit. */
cake_err cake_memplan_solve(const cake_options *options, const cake_comm *world, cake_stage *stage);

#endif
