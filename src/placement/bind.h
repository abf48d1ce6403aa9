/* SPDX-License-Identifier: Apache-2.0
 *
 * Binds this process, its threads and their memory to cpus and NUMA domains of this machine.
 */
#ifndef CAKE_PLACEMENT_BIND_H
#define CAKE_PLACEMENT_BIND_H

#include "placement/pin.h"

typedef struct cake_binding cake_binding;

/* Reads the current binding; fills *request, except its threads. Call before threads that compute exist.
 * hwloc: the topology of this machine, taken over; NULL: reads it. NULL: hwloc cannot read the machine, and
 * nothing is bound. */
cake_binding *cake_binding_open(struct hwloc_topology *hwloc, const cake_launcher *launcher, cake_bind bind,
                                cake_bind_request *request);
/* Restores the original mask of the process. NULL is fine. */
void cake_binding_close(cake_binding *binding);

struct hwloc_topology *cake_binding_hwloc(const cake_binding *binding); /* borrowed */
/* The cpus that the cgroup allows. */
void cake_binding_all(const cake_binding *binding, cake_cpuset *cpus);

/* Binds the whole process to cpus. False: the system does not allow it, and nothing has changed. */
bool cake_binding_process(cake_binding *binding, const cake_cpuset *cpus);
/* Binds the calling thread to cpus. Pages that it touches first come from the domain while that has free
 * memory (domain -1: no preference). Thread-safe. */
bool cake_binding_thread(cake_binding *binding, const cake_cpuset *cpus, int domain);

#endif
