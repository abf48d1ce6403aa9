/* SPDX-License-Identifier: Apache-2.0
 *
 * Which GPU each rank has, and how much of its memory.
 */
#ifndef CAKE_PLANNER_GPU_ASSIGN_H
#define CAKE_PLANNER_GPU_ASSIGN_H

#include "kernels/kernels.h"
#include "place/pci_devices.h"
#include "planner/affinity.h"
#include "planner/topology_io.h"

/* What the user asked for. */
typedef struct cake_gpu_options {
    const char *device; /* --device */
    const char *isa;    /* --isa */
    int64_t memory;     /* --gpu-memory, bytes; 0: what the GPUs have */
    int64_t layers;     /* --gpu-layers; -1: all that fit */
    bool plan;          /* only plan: GPUs need not be there, and none is opened */
} cake_gpu_options;

/* All ranks together, when they have their cpus: the nearest GPU of this host for each rank, or the one that
 * the topology says, if --device, the topology or what is there has them on GPUs. For a run it is opened;
 * kernels: its operations, of a plan only what they take, NULL for ranks on CPUs; any: some rank is on one.
 * Who has to share one is told the launch line that would be right. An error if there is none, or it is
 * hidden or busy. said: of this rank. */
cake_err cake_gpu_assign(const cake_gpu_options *options, const cake_topology_file *file,
                         const cake_topology_rank *said, const cake_comm *world,
                         const cake_affinity *placement, cake_gpu *gpu, const cake_kernels **kernels,
                         bool *any);

#endif
