/* SPDX-License-Identifier: Apache-2.0
 *
 * --bind and --threads: the cpus of this rank and its number of threads. All ranks call together.
 */
#ifndef CAKE_PLANNER_AFFINITY_H
#define CAKE_PLANNER_AFFINITY_H

#include "link/comm.h"
#include "placement/bind.h"
#include "placement/machine.h"
#include "placement/topology.h"
#include "planner/topology_io.h"

/* The user's options. */
typedef struct cake_affinity_options {
    const char *bind; /* --bind */
    int threads;      /* --threads or OMP_NUM_THREADS; 0: not given */
} cake_affinity_options;

typedef struct cake_affinity {
    cake_binding *binding; /* owned; NULL: nothing is bound */
    cake_pin pin;
    bool bound; /* the process is bound to pin.cpus */
    int n_thread;
    bool oversubscribed; /* this host has more threads than cpus; only then the next three are set: */
    int sharing_ranks, sharing_threads; /* the ranks that share cpus, this one included, and their threads */
    double shared_cpus;                 /* cpus that they may run on, or the cgroup's quota */
} cake_affinity;

/* Chooses cpus and binds this process to them; *machine is updated. Logs once what it replaced and what is
 * wrong with the launch line. from_file: this rank's entry in the topology file; it overrides the options,
 * and is refused if it cannot be satisfied. */
cake_err cake_affinity_open(const cake_affinity_options *options, const cake_topology_file *file,
                            const cake_topology_rank *from_file, const cake_comm *world,
                            cake_machine *machine, cake_affinity *affinity);
/* The cpus of this rank if it is bound to fewer than the cgroup has; else none. */
cake_cpuset cake_affinity_part(const cake_affinity *affinity);
/* Binds each thread of the team. Call it again after work by fewer threads: OpenMP ends surplus threads, and
 * those that it starts later inherit the mask of the first one. */
void cake_affinity_pin(cake_affinity *affinity);
/* Binds the calling thread, which is none of the team, to all cpus of the rank. */
void cake_affinity_helper(cake_affinity *affinity);
/* Restores the first mask of the process; zeros are fine. */
void cake_affinity_close(cake_affinity *affinity);

#endif
