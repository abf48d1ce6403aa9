/* SPDX-License-Identifier: Apache-2.0
 *
 * In: each rank's own machine. Out: the machines of all ranks, the same on all of them.
 * Invariant: a rank on a GPU counts as a node of its own, with the GPU's memory.
 */
#include "planner/cluster.h"

#include <limits.h>
#include <stdlib.h>

#include "base/alloc.h"

/* Ranks read free memory at different moments: the minimum of a host counts for all of its ranks. */
static void take_min_memory(cake_cluster *cluster)
{
    cake_rank_resources *resources = cluster->resources;
    for (int i = 0; i < cluster->n_rank; i++) {
        cake_rank_resources *first = &resources[resources[i].node];
        first->memory = resources[i].memory < first->memory ? resources[i].memory : first->memory;
    }
    for (int i = 0; i < cluster->n_rank; i++)
        resources[i].memory = resources[resources[i].node].memory;
}

void cake_cluster_gather(const cake_comm *world, cake_machine *machine, const cake_gpu *gpu, int n_thread,
                         int64_t mapping, cake_cluster *cluster)
{
    const bool on_gpu = gpu->used;
    cake_rank_resources mine = {.node = world->rank,
                                .local_size = on_gpu ? 1 : world->local_size,
                                .n_thread = n_thread,
                                .overflow = on_gpu ? machine->memory / world->local_size : 0,
                                .memory = on_gpu ? gpu->memory : machine->memory,
                                .mapping = mapping};
    int *node_ranks = cake_alloc((size_t)world->local_size, sizeof *node_ranks),
        id = on_gpu ? INT_MAX : world->rank;
    cake_comm_node_allgather(world, &id, node_ranks, sizeof *node_ranks);
    for (int i = 0; i < world->local_size && !on_gpu; i++)
        mine.node = node_ranks[i] < mine.node ? node_ranks[i] : mine.node;
    free(node_ranks);
    cluster->resources = cake_alloc((size_t)world->size, sizeof mine);
    cluster->n_rank = world->size;
    cake_comm_gather(world, &mine, cluster->resources, sizeof mine);
    cake_comm_bcast(world, cluster->resources, (size_t)world->size * sizeof mine);
    take_min_memory(cluster);
    if (!on_gpu)
        machine->memory = cluster->resources[world->rank].memory;
}

void cake_cluster_overflow(cake_cluster *cluster)
{
    for (int i = 0; i < cluster->n_rank; i++)
        cluster->resources[i].memory += cluster->resources[i].overflow;
}
