/* SPDX-License-Identifier: Apache-2.0
 *
 * All ranks learn the machines of all ranks.
 */
#ifndef CAKE_PLANNER_CLUSTER_H
#define CAKE_PLANNER_CLUSTER_H

#include "link/comm.h"
#include "place/machine.h"
#include "place/pci_devices.h"
#include "planner/planning.h"

/* Fills n_rank and resources from what each rank has: n_thread threads, mapping bytes that it may map. Ranks
 * of one host go by the least free memory that any of them saw; machine->memory becomes that, too. All ranks
 * call. */
void cake_cluster_gather(const cake_comm *world, cake_machine *machine, const cake_gpu *gpu, int n_thread,
                         int64_t mapping, cake_cluster *cluster);
/* From now on, layers that do not fit into GPUs may lie in the memory of their hosts. */
void cake_cluster_overflow(cake_cluster *cluster);

#endif
