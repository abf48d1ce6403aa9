/* SPDX-License-Identifier: Apache-2.0
 *
 * Topology files: YAML that assigns layers to workers, in the format of cake (github.com/evilsocket/cake)
 * with some keys of our own; see docs/topology.md. Pure: a text and the host names of the ranks in, hops out.
 */
#ifndef CAKE_PLACEMENT_TOPOLOGY_H
#define CAKE_PLACEMENT_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "formats/yaml.h"
#include "placement/cpuset.h"
#include "placement/plan.h"

enum { CAKE_TOPOLOGY_THREADS = 4096 }; /* maximum per rank */

/* A topology file's restriction of the cpus of a rank. */
typedef enum cake_where { CAKE_WHERE_ANY, CAKE_WHERE_CPUS, CAKE_WHERE_DOMAINS } cake_where;

typedef enum cake_device_choice { CAKE_DEVICE_AUTO, CAKE_DEVICE_CPU, CAKE_DEVICE_CUDA } cake_device_choice;

/* Settings of a rank in a file, without its layers; zeros: none. */
typedef struct cake_topology_rank {
    int64_t kv_memory; /* like in cake_options */
    int64_t memory;    /* for weights and KV cache, in the same form */
    int threads;
    cake_where where;
    cake_cpuset set; /* numbers of cpus or of NUMA domains */
    cake_device_choice device;
    bool has_gpu;
    int gpu;
    char worker[64];       /* printable name of its worker; "": none, only for the first rank of a replica */
    cake_yaml_position at; /* of the worker in the file */
    cake_yaml_position where_at, memory_at, kv_memory_at, device_at, gpu_at; /* of its fields */
} cake_topology_rank;

typedef struct cake_topology {
    int n_replica, n_rank;    /* ranks in all, as many in each replica */
    cake_plan *plan;          /* [n_replica] owned; layers that no worker lists belong to the first rank */
    cake_topology_rank *rank; /* [n_rank] owned */
    bool ports;               /* some hosts have ports, which are ignored */
} cake_topology;

/* text [len]; hosts [n_rank]: the names of each rank's host, separated by spaces, its own name first. hosts
 * NULL: unknown yet, any host matches, and there is one replica; n_rank 0: as many as the file needs.
 * n_layer: of the model. *out is owned (cake_topology_free) and set on success; else CAKE_ERR_FATAL, not
 * reported yet, and *fault has the error and its position. */
cake_err cake_topology_parse(const char *text, size_t len, const char *const *hosts, int n_rank, int n_layer,
                             cake_topology *out, cake_yaml_fault *fault);
void cake_topology_free(cake_topology *topology);

/* Appends plans [n_replica] as a file that cake_topology_parse reads back, for as many ranks. rank, about
 * [all ranks]: settings and descriptions. Workers are named by rank, not by host: the next job has other
 * hosts. */
void cake_topology_write(const cake_plan *plan, int n_replica, const cake_topology_rank *rank,
                         const char *const *about, cake_buf *out);

#endif
