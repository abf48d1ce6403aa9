/* SPDX-License-Identifier: Apache-2.0
 *
 * What this process may use of the machine it runs on.
 */
#ifndef CAKE_PLACE_MACHINE_H
#define CAKE_PLACE_MACHINE_H

#include <stdint.h>

#include "base/buf.h"

struct hwloc_topology;

typedef struct cake_machine {
    int cpus;          /* that this process may run on: its affinity mask within its cgroup */
    int cores_mine;    /* whole cores within these cpus, at least 1: how many threads make sense */
    int cores_allowed; /* of the cgroup, which the ranks of this machine share */
    int cores;         /* of the whole machine */
    int numa;          /* NUMA domains */
    int packages;
    char mask[128]; /* the cpus as a list, "0-3,8" */
    char model[96]; /* the processor's name */
    double quota;   /* cpus whose time the control group grants, which ranks of this machine share; 0: all */
    int64_t memory; /* bytes free to this process: the kernel's estimate, not above what the cgroup leaves */
    int64_t memory_all; /* bytes of the machine */
    /* Bytes of the machine that hwloc was told of (HWLOC_XMLFILE, HWLOC_SYNTHETIC); 0: it is this one. */
    int64_t memory_said;
} cake_machine;

void cake_machine_read(cake_machine *machine);
/* Says if hwloc is to read a machine from a file that it cannot read, and so takes this one. */
void cake_machine_warn(void);
/* Caches, NUMA domains (memory, package, cores, hardware threads, cpus) and devices of any machine that hwloc
 * knows. */
void cake_machine_draw(struct hwloc_topology *topology, cake_buf *out);
/* The machine as info shows it: processor, caches, domains, memory, limits, hwloc's version. */
void cake_machine_describe(const cake_machine *machine, cake_buf *out);

/* Whether arenas may have transparent huge pages, by the kernel's setting, as "always [madvise] never". */
void cake_machine_huge(const char *setting, cake_buf *out);

/* How many bytes this process, whose threads are there, may still map for weights, cache and buffers (ulimit
 * -v): what it maps later beside them is not in it. INT64_MAX: any number. */
int64_t cake_machine_mapping(void);

/* How many bytes this process may lock in memory, its limit raised as far as it may be; INT64_MAX: any
 * number. */
int64_t cake_machine_lockable(void);

/* The most memory this process has held so far, in bytes. */
int64_t cake_machine_peak(void);
/* What this process may write to of its own, in bytes, whether it was touched or not; 0: unknown. */
int64_t cake_machine_data(void);

#endif
