/* SPDX-License-Identifier: Apache-2.0
 *
 * Which GPU each rank has, and how much of its memory.
 */
#ifndef CAKE_PLANNER_GPU_ASSIGN_H
#define CAKE_PLANNER_GPU_ASSIGN_H

#include "kernels/kernels.h"
#include "place/pci_devices.h"
#include "planner/affinity.h"

/* All ranks together, when they have their cpus: the nearest GPU of this host for each rank, or the one that
 * the topology says, if --device, the topology or what is there has them on GPUs. For a run it is opened;
 * kernels: its operations, of a plan only what they take, NULL for ranks on CPUs; any: some rank is on one.
 * Who has to share one is told the launch line that would be right. An error if there is none, or it is
 * hidden or busy. said: of this rank. */
cake_err cake_gpu_assign(const cake_options *options, const cake_topology_rank *said, const cake_comm *world,
                         const cake_affinity *placement, cake_gpu *gpu, const cake_kernels **kernels,
                         bool *any);

#endif
