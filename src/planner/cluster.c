/* SPDX-License-Identifier: Apache-2.0
 *
 * In: each rank's own machine. Out: the machines of all ranks, the same on all of them.
 * Invariant: a rank on a GPU counts as a host of its own, with the GPU's memory.
 */
#include "planner/cluster.h"

#include <limits.h>
#include <stdlib.h>

#include "base/alloc.h"

/* Free memory was read at different moments: the least that a rank of the host saw counts for all of them. */
static void share_least_memory(cake_cluster *cluster)
{
    cake_rank_resources *resources = cluster->resources;
    for (int i = 0; i < cluster->n_rank; i++) {
        cake_rank_resources *host = &resources[resources[i].host];
        host->memory = resources[i].memory < host->memory ? resources[i].memory : host->memory;
    }
    for (int i = 0; i < cluster->n_rank; i++)
        resources[i].memory = resources[resources[i].host].memory;
}

void cake_cluster_gather(const cake_comm *world, cake_machine *machine, const cake_gpu *gpu, int n_thread,
                         int64_t mapping, cake_cluster *cluster)
{
    const bool own = gpu->used;
    cake_rank_resources mine = {.host = world->rank,
                                .local_size = own ? 1 : world->local_size,
                                .n_thread = n_thread,
                                .overflow = own ? machine->memory / world->local_size : 0,
                                .memory = own ? gpu->memory : machine->memory,
                                .mapping = mapping};
    int *here = cake_alloc((size_t)world->local_size, sizeof *here), sharing = own ? INT_MAX : world->rank;
    cake_comm_node_allgather(world, &sharing, here, sizeof *here);
    for (int i = 0; i < world->local_size && !own; i++)
        mine.host = here[i] < mine.host ? here[i] : mine.host;
    free(here);
    cluster->resources = cake_alloc((size_t)world->size, sizeof mine);
    cluster->n_rank = world->size;
    cake_comm_gather(world, &mine, cluster->resources, sizeof mine);
    cake_comm_bcast(world, cluster->resources, (size_t)world->size * sizeof mine);
    share_least_memory(cluster);
    if (!own)
        machine->memory = cluster->resources[world->rank].memory;
}

void cake_cluster_overflow(cake_cluster *cluster)
{
    for (int i = 0; i < cluster->n_rank; i++)
        cluster->resources[i].memory += cluster->resources[i].overflow;
}
