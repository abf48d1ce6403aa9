/* SPDX-License-Identifier: Apache-2.0
 *
 * What the control groups of this process leave to it: memory and the time of cpus, under version 1 and 2
 * of the kernel's interface (cgroups(7)). Groups are nested, as a Slurm job, its step and a container
 * are: the tightest one counts.
 */
#ifndef CAKE_PLACE_CGROUP_H
#define CAKE_PLACE_CGROUP_H

#include <stdint.h>

typedef struct cake_cgroup {
    int64_t memory; /* bytes that are left, page cache counted as free; -1: no limit */
    double cpus;    /* whose time it may use, 1.5 for one and a half; 0: no limit */
} cake_cgroup;

/* root stands before every path: "" for this machine, a folder in tests. */
void cake_cgroup_read(const char *root, cake_cgroup *out);

#endif
