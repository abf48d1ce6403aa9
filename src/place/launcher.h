/* SPDX-License-Identifier: Apache-2.0
 *
 * Who started this process, and whether the cpus it may run on were somebody's wish.
 */
#ifndef CAKE_PLACE_LAUNCHER_H
#define CAKE_PLACE_LAUNCHER_H

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
    bool unasked; /* it has bound its ranks, and nobody told it how */
    bool openmp;  /* OpenMP's own variables bind its threads */
    int tasks;    /* that it started together; 0: it does not say */
} cake_launcher;

/* From the environment: env as execve has it, "NAME=value" and NULL. Which variables Open MPI sets was seen
 * in its release 4.1.4; a launcher that is not known, and Open MPI 5, count as asked. */
void cake_launcher_find(char *const *env, cake_launcher *out);

/* The process of Open MPI that started this one (mpirun, or its daemon on this host), whatever shells are
 * between; -1: there is none to be found. */
pid_t cake_launcher_process(void);

/* A command line for n_rank ranks in all: with so many cores each, or (cores 0) one NUMA domain each. */
void cake_launcher_line(cake_launch kind, int n_rank, int cores, cake_buf *out);
/* A command line for so many ranks on each of some hosts. */
void cake_launcher_each(cake_launch kind, int n_host, int each, cake_buf *out);

#endif
