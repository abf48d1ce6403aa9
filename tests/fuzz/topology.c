/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer: a topology file for four ranks and twelve layers. An accepted one must be a plan,
 * an error must have a position, and a written plan must be read back unchanged.
 */
#include <string.h>

#include "placement/topology.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { N_RANK = 4, N_LAYER = 12 };

static const char *const hosts[N_RANK] = {"here 10.0.0.1", "n1.cluster 10.0.0.2", "n1.cluster 10.0.0.2",
                                          "n2.cluster 10.0.0.3 fe80::3"};

static void check(const cake_topology *t)
{
    CAKE_ASSERT(t->n_rank == N_RANK && t->n_replica > 0 && N_RANK % t->n_replica == 0);
    int size = N_RANK / t->n_replica;
    for (int replica = 0; replica < t->n_replica; replica++) {
        const cake_plan *plan = &t->plan[replica];
        int next = 0;
        CAKE_ASSERT(plan->n_rank == size && plan->first == replica * size && plan->n_hop >= size - 1);
        for (int i = 0; i < plan->n_hop; i++) {
            const cake_hop *hop = &plan->hop[i];
            CAKE_ASSERT(hop->rank >= 0 && hop->rank < size && hop->first == next && hop->count > 0);
            CAKE_ASSERT(i == 0 || hop[-1].rank != hop->rank);
            next += hop->count;
        }
        CAKE_ASSERT(next == N_LAYER);
    }
    for (int r = 0; r < N_RANK; r++)
        CAKE_ASSERT(t->rank[r].threads >= 0 && t->rank[r].threads <= CAKE_TOPOLOGY_THREADS &&
                    t->rank[r].kv_memory >= -100 && t->rank[r].memory >= -100 &&
                    (r % size == 0 || t->rank[r].at.line > 0) &&
                    (t->rank[r].where == CAKE_WHERE_ANY) == !cake_cpuset_count(&t->rank[r].set));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cake_topology one, two;
    cake_yaml_fault fault = {.message = ""};
    if (cake_topology_parse((const char *)data, size, hosts, N_RANK, N_LAYER, &one, &fault)) {
        CAKE_ASSERT(fault.at.line > 0 && fault.at.column > 0 && fault.message[0]);
        return 0;
    }
    check(&one);
    cake_buf text = {0};
    cake_topology_write(one.plan, one.n_replica, one.rank, hosts, &text);
    cake_buf_adds(&text, "");
    CAKE_ASSERT(!cake_topology_parse(text.data, text.len, hosts, N_RANK, N_LAYER, &two, &fault));
    CAKE_ASSERT(one.n_replica == two.n_replica);
    for (int i = 0; i < one.n_replica; i++)
        CAKE_ASSERT(one.plan[i].n_hop == two.plan[i].n_hop &&
                    !memcmp(one.plan[i].hop, two.plan[i].hop, (size_t)one.plan[i].n_hop * sizeof(cake_hop)));
    for (int r = 0; r < N_RANK; r++)
        CAKE_ASSERT(!memcmp(&one.rank[r].set, &two.rank[r].set, sizeof one.rank[r].set));
    cake_topology_free(&one);
    cake_topology_free(&two);
    cake_buf_free(&text);
    return 0;
}
