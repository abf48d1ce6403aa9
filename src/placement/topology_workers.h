/* SPDX-License-Identifier: Apache-2.0
 *
 * The workers of a topology file: assigns ranks and layers to them. topology.c reads them.
 */
#ifndef CAKE_PLACEMENT_TOPOLOGY_WORKERS_H
#define CAKE_PLACEMENT_TOPOLOGY_WORKERS_H

#include "placement/topology.h"

typedef struct cake_worker {
    char *name, *host; /* owned; host without its port, NULL: any */
    cake_yaml_position host_at, rank_at, replica_at;
    int rank, replica;        /* requested, or -1; cake_workers_match and _part fill them in */
    bool listed;              /* it lists layers */
    cake_topology_rank given; /* its settings, without its name */
} cake_worker;

/* An entry of a worker's list: layers first to last. */
typedef struct cake_layer_claim {
    int worker, first, last;
    cake_yaml_position at;
} cake_layer_claim;

/* True if host matches one of names (separated by spaces). host is a name or a pattern with * and ?; case is
 * ignored, and so is the domain if one of both has none. */
bool cake_workers_host_matches(const char *host, const char *names);

/* Number of ranks that the workers need: one each, and rank 0, which need not be listed. */
int cake_workers_ranks(const cake_worker *worker, int n);

/* Sets each worker's replica: the one it names, else that of its rank, else the first. Replicas have equal
 * numbers of consecutive ranks. *n_replica: their number. running: the ranks exist, they are not those of
 * --ranks. */
cake_err cake_workers_part(cake_worker *worker, int n, bool running, int n_rank, int *n_replica,
                           cake_yaml_fault *fault);

/* Sets each worker's rank: the one it names, else the next rank of its host; names are served before
 * patterns, and the first rank of a replica is used only if the others do not suffice. All ranks but the
 * first of a replica must have a worker with layers. hosts as in cake_topology_parse; end: position for one
 * more worker. */
cake_err cake_workers_match(cake_worker *worker, int n, const char *const *hosts, int n_rank, int n_replica,
                            cake_yaml_position end, cake_yaml_fault *fault);

/* Sets the owner of each layer: owner [n_replica, n_layer] is an index of claim, or -1. */
cake_err cake_workers_own(const cake_worker *worker, const cake_layer_claim *claim, int n_claim, int n_layer,
                          int n_replica, int *owner, cake_yaml_fault *fault);

/* Fills hop [n_layer] with the hops of a replica, from owner [n_layer] and workers with ranks, which count
 * from `first`. Returns their number. */
int cake_workers_hops(const cake_worker *worker, const cake_layer_claim *claim, const int *owner, int n_layer,
                      int first, cake_hop *hop);

#endif
