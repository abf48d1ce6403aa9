/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a rank's layers, embedding and head are: in its host's memory, or the first layers in that of its
 * GPU.
 */
#ifndef CAKE_PLANNER_OFFLOAD_H
#define CAKE_PLANNER_OFFLOAD_H

#include "planner/stage.h"

/* Layers of a hop that are in one memory. */
typedef struct cake_hop_part {
    cake_hop hop;
    const cake_kernels *kernels; /* the stage's own, or those of its GPU */
} cake_hop_part;

/* The operations that a rank begins with: its GPU's, if it has one. */
const cake_kernels *cake_offload_first(const cake_stage *stage);
/* The memories of a rank: kernels [2], its GPU's first. Returns how many there are. */
int cake_offload_memories(const cake_stage *stage, const cake_kernels **kernels);
/* The parts of a rank of a plan, in the plan's order: part [plan->n_hop + 1]. Returns how many there are. */
int cake_offload_of(const cake_stage *stage, const cake_plan *plan, int rank, cake_hop_part *part);
/* Whose the head is on rank 0: its GPU's, if all of its layers are there. */
const cake_kernels *cake_offload_head(const cake_stage *stage, const cake_plan *plan);
/* Whose the embedding is on rank 0: its GPU's, if the head is and waves begin there. */
const cake_kernels *cake_offload_embed(const cake_stage *stage, const cake_plan *plan);
/* Whether who sends on edge e has the body on its GPU, and whether who receives wants it there: layers, the
 * embedding or the head. Of other ranks as far as this one knows: as if they were like it. */
bool cake_offload_sends_device(const cake_stage *stage, const cake_plan *plan, int e);
bool cake_offload_receives_device(const cake_stage *stage, const cake_plan *plan, int e);
/* Whether both ends of edge e are on this rank's own GPU: bodies stay there. */
bool cake_offload_stays_on_device(const cake_stage *stage, const cake_plan *plan, int e);
/* What a rank has in the memory of these kernels; ranges [plan->n_hop + 1] are filled. */
cake_weight_set cake_offload_weight_set(const cake_stage *stage, const cake_plan *plan, int rank,
                                        const cake_kernels *kernels, cake_range *ranges);
/* Bytes of its weights there. */
int64_t cake_offload_weights(const cake_stage *stage, const cake_plan *plan, int rank,
                             const cake_kernels *kernels);
/* All ranks together. On rank 0: whose operations are between a request and its result, which decides about
 * bits: the name of a table, or which layers have which. Replicas that differ in this are warned of. */
void cake_offload_describe(const cake_comm *world, const cake_stage *stage, cake_buf *out);
/* How many layers a rank has. */
int cake_offload_layers(const cake_plan *plan, int rank);

#endif
