/* SPDX-License-Identifier: Apache-2.0
 *
 * The workers of a topology file: who is which rank, and whose which layer is. topology.c reads them.
 */
#ifndef CAKE_PLACE_TOPOLOGY_WORKERS_H
#define CAKE_PLACE_TOPOLOGY_WORKERS_H

#include "place/topology.h"

typedef struct cake_worker {
    char *name, *host; /* owned; host without its port, NULL: any */
    cake_yaml_position host_at, rank_at, replica_at;
    int rank, replica;       /* asked for, or -1; cake_workers_match and _part fill them in */
    bool listed;             /* it has layers of its own */
    cake_topology_rank said; /* its name is not in it yet */
} cake_worker;

/* A worker says that layers are its: first to last. */
typedef struct cake_layer_claim {
    int worker, first, last;
    cake_yaml_position at;
} cake_layer_claim;

/* Whether a host of these names (with spaces between them) is meant: the name itself, without regard to case
 * and to the domain if one of both has none, or a pattern with * and ?. */
bool cake_workers_meant(const char *host, const char *names);

/* Ranks that the workers need: one each, and rank 0, which nobody has to name. */
int cake_workers_ranks(const cake_worker *worker, int n);

/* Tells each worker its replica: what it says, else that of its rank, else the first. Replicas have ranks in
 * their order, as many each. *n_replica: how many there are. */
cake_err cake_workers_part(cake_worker *worker, int n, int n_rank, int *n_replica, cake_yaml_fault *fault);

/* Gives each worker of n_replica its rank: the one it asks for; else, in order, those of its host, the first
 * of its replica only where there would not be enough without it, and patterns after names. All but the first
 * of a replica must have a worker, with layers. hosts as in cake_topology_parse; end: where one more worker
 * would stand. */
cake_err cake_workers_match(cake_worker *worker, int n, const char *const *hosts, int n_rank, int n_replica,
                            cake_yaml_position end, cake_yaml_fault *fault);

/* Whose each layer is: owner [n_replica, n_layer], the number of the claim, or -1: nobody's. */
cake_err cake_workers_own(const cake_worker *worker, const cake_layer_claim *claim, int n_claim, int n_layer,
                          int n_replica, int *owner, cake_yaml_fault *fault);

/* The hops of a replica with owner [n_layer], by workers that have ranks, which count from `first`; hop
 * [n_layer] is filled. Returns how many. */
int cake_workers_hops(const cake_worker *worker, const cake_layer_claim *claim, const int *owner, int n_layer,
                      int first, cake_hop *hop);

#endif
