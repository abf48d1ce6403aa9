/* SPDX-License-Identifier: Apache-2.0
 *
 * --bind and --threads: which cpus this rank computes on, with how many threads. All ranks call together.
 */
#ifndef CAKE_PLANNER_AFFINITY_H
#define CAKE_PLANNER_AFFINITY_H

#include "link/comm.h"
#include "place/bind.h"
#include "place/machine.h"
#include "place/topology.h"
#include "planner/topology_io.h"

/* What the user asked for. */
typedef struct cake_affinity_options {
    const char *bind; /* --bind */
    int threads;      /* --threads or OMP_NUM_THREADS; 0: not given */
} cake_affinity_options;

typedef struct cake_affinity {
    cake_binding *binding; /* owned; NULL: nothing is bound */
    cake_pin pin;
    bool bound; /* the process, to pin.cpus */
    int n_thread;
    bool crowded;                   /* ranks of this host have more threads than cpus for them: */
    int crowd_ranks, crowd_threads; /* crowded: of those that take turns with this one, it among them */
    double crowd_cpus;              /* crowded: that these may run on, or have the time of */
} cake_affinity;

/* Decides, and moves this process to its cpus, which *machine then says too. What was replaced and what is
 * wrong with the launch line is said once. said: what a topology file says of this rank, and refused if it
 * cannot be; else the options say. */
cake_err cake_affinity_open(const cake_affinity_options *options, const cake_topology_file *file,
                            const cake_topology_rank *said, const cake_comm *world, cake_machine *machine,
                            cake_affinity *placement);
/* The cpus of this rank, if it is bound to less than the cgroup has; else none. */
cake_cpuset cake_affinity_part(const cake_affinity *placement);
/* Each thread of the team to its cpus. Again after work by fewer threads: OpenMP ends those that are left
 * over, and those that it starts later are where the first one is. */
void cake_affinity_pin(cake_affinity *placement);
/* The process has its first mask again; zeros are fine. */
void cake_affinity_close(cake_affinity *placement);

#endif
