/* SPDX-License-Identifier: Apache-2.0
 *
 * Gathers the machines of all ranks on all ranks.
 */
#ifndef CAKE_PLANNER_CLUSTER_H
#define CAKE_PLANNER_CLUSTER_H

#include "link/comm.h"
#include "placement/machine.h"
#include "placement/pci_devices.h"
#include "planner/planning.h"

/* Fills n_rank and resources. n_thread, mapping: threads of this rank and bytes that it may map. Free memory
 * of a host is the minimum that any of its ranks saw; machine->memory is set to it. All ranks call. */
void cake_cluster_gather(const cake_comm *world, cake_machine *machine, const cake_gpu *gpu, int n_thread,
                         int64_t mapping, cake_cluster *cluster);
/* Lets layers that do not fit into GPUs spill into host memory. */
void cake_cluster_overflow(cake_cluster *cluster);

#endif
