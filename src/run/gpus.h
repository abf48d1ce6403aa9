/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans for GPUs, on which nothing computes yet: which one each rank would have, and how much memory.
 */
#ifndef CAKE_RUN_GPUS_H
#define CAKE_RUN_GPUS_H

#include "place/devices.h"
#include "run/placement.h"

/* All ranks together, when they have their cpus: for `plan --device cuda`, or if a topology asks for it. The nearest GPU of
 * this host for each rank, or the one that the topology says. Who has to share one is told the launch line that would be
 * right. An error if there is none, its memory is not known, or some ranks are on CPUs. said: of this rank. */
cake_err cake_gpus_choose(const cake_options *options, const cake_topology_rank *said,
                          const cake_world *world, const cake_placement *placement, cake_gpu *gpu);

#endif
