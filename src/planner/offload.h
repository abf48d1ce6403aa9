/* SPDX-License-Identifier: Apache-2.0
 *
 * Where layers, embedding and head of a rank are: in its GPU's memory or its host's. The GPU has the first
 * layers of its rank.
 */
#ifndef CAKE_PLANNER_OFFLOAD_H
#define CAKE_PLANNER_OFFLOAD_H

#include "engine/stats.h"
#include "model/weight_split.h"
#include "planner/planning.h"

/* Layers of a hop in one memory. */
typedef struct cake_hop_part {
    cake_hop hop;
    const cake_kernels *kernels;
} cake_hop_part;

/* The kernels of a rank's first layers: its GPU's, if it has one. */
const cake_kernels *cake_offload_first(const cake_plan_input *input);
/* The kernels of a rank's memories [2], its GPU's first. Returns the count. */
int cake_offload_memories(const cake_plan_input *input, const cake_kernels **kernels);
/* The layer of multi-token prediction, as a hop of rank 0 behind the plan's; of no layers
 * unless the model has it open. */
cake_hop cake_offload_mtp(const cake_planning *planning);
/* The parts of a rank's hops, in the plan's order, and that layer: part [plan->n_hop + 2]. Returns the
 * count. */
int cake_offload_of(const cake_planning *planning, const cake_plan *plan, int rank, cake_hop_part *part);
/* The kernels of the head: the GPU's if it has all layers of rank 0, else the CPU's. */
const cake_kernels *cake_offload_head(const cake_planning *planning, const cake_plan *plan);
/* The kernels of the embedding: those of the head if rank 0 has the first hop, else the CPU's. */
const cake_kernels *cake_offload_embed(const cake_planning *planning, const cake_plan *plan);
/* Whether the sender of edge e has the wave body on its GPU, and whether the receiver needs it on its own.
 * Other ranks are assumed to offload as many layers as this one. */
bool cake_offload_sends_device(const cake_planning *planning, const cake_plan *plan, int e);
bool cake_offload_receives_device(const cake_planning *planning, const cake_plan *plan, int e);
/* Whether both ends of edge e are on this rank's GPU. */
bool cake_offload_stays_on_device(const cake_planning *planning, const cake_plan *plan, int e);
/* Bytes of the largest wave body. */
size_t cake_offload_body_bytes(const cake_planning *planning);
/* Maximum bytes of GPU memory that a rank needs for bodies that come from or go to other GPUs. */
int64_t cake_offload_edge_bytes(const cake_planning *planning, const cake_plan *plan, int rank);
/* The weights that a rank keeps in the memory of these kernels; fills ranges [plan->n_hop + 2]. */
cake_weight_set cake_offload_weight_set(const cake_planning *planning, const cake_plan *plan, int rank,
                                        const cake_kernels *kernels, cake_range *ranges);
/* What this rank holds of its weights in host memory, and what it reads for waves. */
void cake_offload_split(const cake_planning *planning, const cake_plan *plan, int rank,
                        cake_weight_split *split);
/* The same for a report: bytes that waves read, and the smallest possible --weights-memory. */
void cake_offload_report(const cake_planning *planning, const cake_plan *plan, int rank,
                         cake_report_stage *report);
/* Bytes of these weights. */
int64_t cake_offload_weights(const cake_planning *planning, const cake_plan *plan, int rank,
                             const cake_kernels *kernels);
/* The number of layers of a rank. */
int cake_offload_layers(const cake_plan *plan, int rank);

#endif
