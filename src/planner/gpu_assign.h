/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPU of each rank, and its share of that GPU's memory.
 */
#ifndef CAKE_PLANNER_GPU_ASSIGN_H
#define CAKE_PLANNER_GPU_ASSIGN_H

#include "kernels/kernels.h"
#include "placement/pci_devices.h"
#include "planner/affinity.h"
#include "planner/topology_io.h"

/* The user's options. */
typedef struct cake_gpu_options {
    const char *device; /* --device */
    const char *isa;    /* --isa */
    const char *launch; /* --gpu-launch */
    int64_t memory;     /* --gpu-memory, bytes; 0: not given */
    int64_t layers;     /* --gpu-layers; -1: all that fit */
    const char *no_gpu; /* why the model's layers cannot be on a GPU; NULL: they can */
    bool plan;          /* only plan: GPUs need not exist, and none is opened */
} cake_gpu_options;

/* All that decides on a rank's GPU. */
typedef struct cake_gpu_request {
    const cake_gpu_options *options;
    const cake_topology_file *file;
    const cake_topology_rank *from_file; /* this rank's entry in the topology file */
    const cake_affinity *affinity;
} cake_gpu_request;

/* Assigns to each rank the GPU that the topology names, or the nearest one, if --device, the topology or the
 * hardware puts ranks on GPUs. Call on all ranks, after they are bound to cpus. A run opens the GPU. kernels:
 * its operations (a plan: only their sizes), NULL for a rank on CPUs. any: some rank is on a GPU. Ranks that
 * share a GPU get a warning with a better launch line. Fails if there is no GPU, or it is hidden or busy. */
cake_err cake_gpu_assign(const cake_comm *world, const cake_gpu_request *request, cake_gpu *gpu,
                         const cake_kernels **kernels, bool *any);

#endif
