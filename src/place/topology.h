/* SPDX-License-Identifier: Apache-2.0
 *
 * Topology files: YAML that says which worker has which layers, as cake (github.com/evilsocket/cake) has it,
 * and some keys of our own; docs/topology.md has the format. Pure: a text and the names of the ranks' hosts
 * in, hops out.
 */
#ifndef CAKE_PLACE_TOPOLOGY_H
#define CAKE_PLACE_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "formats/yaml.h"
#include "place/cpuset.h"
#include "place/plan.h"

enum { CAKE_TOPOLOGY_THREADS = 4096 }; /* of a rank, at most */

/* Where a rank may run. */
typedef enum cake_where { CAKE_WHERE_ANY, CAKE_WHERE_CPUS, CAKE_WHERE_DOMAINS } cake_where;

typedef enum cake_device_wish { CAKE_WISH_AUTO, CAKE_WISH_CPU, CAKE_WISH_CUDA } cake_device_wish;

/* What a file says of a rank beside its layers; zeros: nothing. */
typedef struct cake_topology_rank {
    int64_t kv_memory; /* as cake_options has it */
    int64_t memory;    /* that weights and KV may take, written likewise */
    int threads;
    cake_where where;
    cake_cpuset set; /* the numbers of these cpus, or NUMA domains */
    cake_device_wish device;
    bool has_gpu;
    int gpu;
    char worker[64];       /* the name of its worker, printable; "": none, the first rank of a replica only */
    cake_yaml_position at; /* where the worker stands in the file */
    cake_yaml_position where_at, memory_at, kv_memory_at, device_at,
        gpu_at; /* where its fields stand there */
} cake_topology_rank;

typedef struct cake_topology {
    int n_replica, n_rank; /* ranks in all, as many in each replica */
    cake_plan *plan; /* [n_replica] owned; layers in order; those that nobody lists are its first rank's */
    cake_topology_rank *rank; /* [n_rank] owned */
    bool ports;               /* hosts have ports, which mean nothing here */
} cake_topology;

/* text [len]; hosts [n_rank]: the names of each rank's host, the one it calls itself by first, with spaces
 * between them; NULL: nobody knows yet, and any will do, and n_rank 0: as many as the file needs; there is
 * one replica then. n_layer of the model. *out (owned, cake_topology_free) is set on success; else the error
 * is CAKE_ERR_FATAL, nobody has said it yet, and *fault tells what is wrong and where. */
cake_err cake_topology_parse(const char *text, size_t len, const char *const *hosts, int n_rank, int n_layer,
                             cake_topology *out, cake_yaml_fault *fault);
void cake_topology_free(cake_topology *topology);

/* Plans [n_replica] as a file that cake_topology_parse makes the same of, for as many ranks. rank [all
 * ranks]: what was said of them; about [all ranks]: their descriptions. Workers are named by rank, not by
 * host: the next job has other hosts. */
void cake_topology_write(const cake_plan *plan, int n_replica, const cake_topology_rank *rank,
                         const char *const *about, cake_buf *out);

#endif
