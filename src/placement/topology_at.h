/* SPDX-License-Identifier: Apache-2.0
 *
 * --topology in messages. Pure.
 */
#ifndef CAKE_PLACEMENT_TOPOLOGY_AT_H
#define CAKE_PLACEMENT_TOPOLOGY_AT_H

#include <stdbool.h>

#include "placement/topology.h"

/* --topology. */
typedef struct cake_topology_file {
    const char *path; /* NULL: not given */
    bool plan;        /* only plan: messages may propose --ranks */
    bool check_gpus;  /* refuse numbers of GPUs that a host does not have */
} cake_topology_file;

/* "FILE:3:1: ", or a longer part of a message. */
typedef struct cake_topology_at {
    char s[512];
} cake_topology_at;

/* "FILE:3:1: " */
cake_topology_at cake_topology_at_text(const cake_topology_file *file, cake_yaml_position at);
/* "; its layers are those of worker 'a' (FILE:3:1)", or "" without a file or a worker: ends a message about
 * what does not fit. */
cake_topology_at cake_topology_at_worker(const cake_topology_file *file, const cake_topology_rank *mine);

#endif
