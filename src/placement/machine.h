/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine, and the part of it that this process may use.
 */
#ifndef CAKE_PLACEMENT_MACHINE_H
#define CAKE_PLACEMENT_MACHINE_H

#include <stdint.h>

#include "base/buf.h"

struct hwloc_topology;

typedef struct cake_machine {
    int cpus;          /* that this process may run on: its affinity mask within its cgroup */
    int cores_mine;    /* whole cores within these cpus, at least 1: the sensible number of threads */
    int cores_allowed; /* of the cgroup, which the ranks of this machine share */
    int cores;         /* of the whole machine */
    int numa;          /* NUMA domains */
    int packages;
    char mask[128];     /* the cpus as a list, "0-3,8" */
    char model[96];     /* the processor's name */
    double quota;       /* cpu quota of the control group, which the ranks of this machine share; 0: none */
    int64_t memory;     /* free bytes: the kernel's estimate, limited by the cgroup */
    int64_t memory_all; /* bytes of the machine */
    int64_t memory_modelled; /* bytes of the machine in HWLOC_XMLFILE or HWLOC_SYNTHETIC; 0: neither is set */
    struct hwloc_topology *hwloc; /* from cake_machine_open; NULL: not kept */
} cake_machine;

void cake_machine_read(cake_machine *machine);
/* The same, and keeps the topology for cake_binding_open: hwloc takes 10 ms to read a small machine. */
void cake_machine_open(cake_machine *machine);
void cake_machine_close(cake_machine *machine); /* zeros are fine */
/* Warns if HWLOC_XMLFILE cannot be read, so that hwloc uses this machine. */
void cake_machine_warn(void);
/* Appends caches, NUMA domains (memory, package, cores, hardware threads, cpus) and devices of a topology. */
void cake_machine_describe_hwloc(struct hwloc_topology *hwloc, cake_buf *out);
/* Appends processor, caches, domains, memory, limits and hwloc's version, as the info command shows them. */
void cake_machine_describe(const cake_machine *machine, cake_buf *out);

/* Appends whether arenas may have transparent huge pages. setting: the kernel's, as "always [madvise]
 * never". */
void cake_machine_describe_huge_pages(const char *setting, cake_buf *out);

/* Bytes that this process may still map for weights, cache and buffers (ulimit -v), minus what it will map
 * for other purposes. Call after its threads were started. INT64_MAX: no limit. */
int64_t cake_machine_mapping(void);

/* Raises the limit of locked memory as far as allowed and returns it in bytes; INT64_MAX: no limit. */
int64_t cake_machine_lockable(void);

/* Peak resident memory of this process in bytes. */
int64_t cake_machine_peak(void);
/* Private writable memory of this process in bytes, touched or not; 0: unknown. */
int64_t cake_machine_data(void);

#endif
