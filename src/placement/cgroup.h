/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits of memory and cpu time by the control groups of this process, versions 1 and 2 (cgroups(7)). Groups
 * are nested, like a Slurm job, its step and a container: the tightest limit counts.
 */
#ifndef CAKE_PLACEMENT_CGROUP_H
#define CAKE_PLACEMENT_CGROUP_H

#include <stdint.h>

typedef struct cake_cgroup {
    int64_t memory; /* bytes left, with page cache counted as free; -1: no limit */
    double cpus;    /* quota, for instance 1.5; 0: no limit */
} cake_cgroup;

/* root: prefix of every path, "" for this machine, a folder in tests. */
void cake_cgroup_read(const char *root, cake_cgroup *out);

#endif
