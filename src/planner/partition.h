/* SPDX-License-Identifier: Apache-2.0
 *
 * Who gets which layers: as fast as can be, of what fits into the memory of all.
 */
#ifndef CAKE_PLANNER_PARTITION_H
#define CAKE_PLANNER_PARTITION_H

#include "options/options.h"
#include "planner/stage.h"

/* All ranks together, when rates are known: fills the stage's resources and layers. */
void cake_partition_open(const cake_comm *world, cake_stage *stage);
/* Pure, part of it: the layers. */
void cake_partition_weigh(cake_stage *stage);
void cake_partition_close(cake_stage *stage);

/* Pure, by what the stage knows of all ranks: the plan of a replica of ranks [first, first + n) of the world,
 * which replaces the stage's, and its waves. Every layer comes with room for KV pages, as many as sequences
 * usually use; where that is not worth what it costs, with room for less. Returns how many bytes more every
 * host would have to have for that, 0: it fits; the plan is the one that would be made then. */
int64_t cake_partition_solve(const cake_options *options, cake_stage *stage, int first, int n);

/* As cake_partition_solve, of a plan that somebody else has made of all ranks. *plan is the stage's then. */
int64_t cake_partition_adopt(const cake_options *options, cake_stage *stage, cake_plan *plan);

/* Pure: whether ranks [a, a + n) of the world are as those from b on, one by one, so that a replica of them
 * has the same plan, waves and pages. */
bool cake_partition_same(const cake_stage *stage, int a, int b, int n);

/* Pure, behind a cut: the KV pages that this plan's ranks have memory for, and lanes of fewer sequences
 * where recurrent states would take more than half of it. As memory_plan.c will find them, if all hosts'
 * ranks have as much. */
void cake_partition_size_kv(const cake_options *options, cake_stage *stage);

/* Pure, behind that: how many bytes the KV memory that was asked for is more than some host's ranks have
 * left; 0: none. */
int64_t cake_partition_kv_deficit(const cake_stage *stage);

/* All ranks of a replica together: its plan, which its first rank makes. */
void cake_partition_agree(const cake_options *options, const cake_comm *world, cake_stage *stage);

/* The least number of ranks, at most as many as layers, that have memory for all of them, if each n_local
 * ranks have n_local times so many bytes together for weights; the first perhaps owns no layer. 0: as many as
 * layers are not enough. */
int cake_partition_min_ranks(const cake_stage *stage, int64_t bytes, int n_local);
/* The bytes of weights that some rank has to have room for, however many there are: of a layer, or of
 * embedding and head. */
int64_t cake_partition_max_layer_bytes(const cake_stage *stage);

#endif
