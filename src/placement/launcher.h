/* SPDX-License-Identifier: Apache-2.0
 *
 * Detects the launcher of this process, and whether its cpu binding was requested by the user.
 */
#ifndef CAKE_PLACEMENT_LAUNCHER_H
#define CAKE_PLACEMENT_LAUNCHER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"

typedef enum cake_launch {
    CAKE_LAUNCH_NONE,
    CAKE_LAUNCH_OPENMPI,
    CAKE_LAUNCH_SLURM,
    CAKE_LAUNCH_HYDRA
} cake_launch;

typedef struct cake_launcher {
    cake_launch kind;
    bool unasked; /* it has bound its ranks by default: the user did not ask for it */
    bool openmp;  /* OpenMP's own variables bind the threads */
    int tasks;    /* number of processes that it started; 0: unknown */
} cake_launcher;

/* From the environment env, "NAME=value" and NULL at the end. The variables of Open MPI are those of release
 * 4.1.4; a binding by an unknown launcher, or by Open MPI 5, counts as requested. */
void cake_launcher_find(char *const *env, cake_launcher *out);

/* The Open MPI process that started this one (mpirun, or its daemon on this host), also through shells; -1:
 * not found. */
pid_t cake_launcher_process(void);

/* Appends a command line for n_rank ranks in all, with `cores` cores each, or (cores 0) a NUMA domain
 * each. */
void cake_launcher_line(cake_launch kind, int n_rank, int cores, cake_buf *out);
/* Appends a command line for `each` ranks on each of n_host hosts. */
void cake_launcher_each(cake_launch kind, int n_host, int each, cake_buf *out);

#endif
