/* SPDX-License-Identifier: Apache-2.0
 *
 * Which rank gets which layers: the fastest partition among those that fit into the memory of all hosts. It
 * prepares costs, speeds and bytes, and decides how much memory KV pages get; placement/plan.c searches.
 */
#ifndef CAKE_PLANNER_PARTITION_H
#define CAKE_PLANNER_PARTITION_H

#include "planner/planning.h"

/* Plans a replica of ranks [first, first + n) of the cluster, and its waves. Memory for a typical number of
 * KV pages is reserved with each layer, or for fewer where that makes the replica faster. Returns 0 if it
 * fits; else the bytes that each host lacks, and the plan is the one for hosts that had them. */
int64_t cake_partition_solve(cake_planning *planning, int first, int n);
/* The same for a given plan of all ranks; the planning takes it over. */
int64_t cake_partition_adopt(cake_planning *planning, cake_plan *plan);
/* Whether ranks [a, a + n) and [b, b + n) are equal pairwise, so that replicas of them have the same plan. */
bool cake_partition_same(const cake_planning *planning, int a, int b, int n);
/* Call after solve or adopt: sets the number of KV pages that the plan's ranks have memory for. Lanes get
 * fewer sequences where recurrent states would take more than half of the cache. */
void cake_partition_size_kv(cake_planning *planning);
/* Call after size_kv: the bytes by which the requested KV memory exceeds what some host has left; 0: it
 * fits. */
int64_t cake_partition_kv_deficit(const cake_planning *planning);
/* The minimum number of ranks (at most one per layer) that hold all layers if each n_local ranks have n_local
 * * bytes together for weights. The first rank may own no layer. 0: even one rank per layer is not enough. */
int cake_partition_min_ranks(const cake_planning *planning, int64_t bytes, int n_local);
/* Bytes of the largest indivisible weights: a layer, or embedding and head. */
int64_t cake_partition_max_layer_bytes(const cake_planning *planning);

#endif
