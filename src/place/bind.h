/* SPDX-License-Identifier: Apache-2.0
 *
 * Pins on the machine that this process runs on: what it has, and the system calls that give threads their
 * cpus and memory its NUMA domain.
 */
#ifndef CAKE_PLACE_BIND_H
#define CAKE_PLACE_BIND_H

#include "place/pin.h"

typedef struct cake_binding cake_binding;

/* Reads the topology and what this process was given; *claim but for its threads. Call it before threads
 * exist. A machine that hwloc cannot read gives NULL, and then nothing is bound. */
cake_binding *cake_binding_open(const cake_launcher *launcher, cake_bind bind, cake_bind_request *claim);
/* The process gets back the mask that it had. NULL is fine. */
void cake_binding_close(cake_binding *binding);

struct hwloc_topology *cake_binding_topology(const cake_binding *binding); /* borrowed */
/* The cpus of the machine that the cgroup has. */
void cake_binding_all(const cake_binding *binding, cake_cpuset *cpus);

/* The whole process may run on these cpus. False: the system does not allow it, and nothing has changed. */
bool cake_binding_process(cake_binding *binding, const cake_cpuset *cpus);
/* The calling thread runs on cpus, and pages that it is the first to touch come from the domain as long as
 * that has some (domain -1: as the system likes). May be called by many threads at the same time. */
bool cake_binding_thread(cake_binding *binding, const cake_cpuset *cpus, int domain);

#endif
