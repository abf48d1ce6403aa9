/* SPDX-License-Identifier: Apache-2.0
 *
 * Stops a run early after SIGTERM, SIGUSR1, SIGUSR2, SIGHUP or SIGXCPU, after --max-runtime, and before the
 * end of the Slurm job. Rank 0 decides; the other ranks ignore the signals, which launchers pass to all.
 */
#ifndef CAKE_WATCH_SHUTDOWN_H
#define CAKE_WATCH_SHUTDOWN_H

#include <stdbool.h>

#include "link/comm.h"

/* From here on signals are only counted. Called before MPI_Init, since a launcher that loses a rank in it
 * waits for ever. */
void cake_shutdown_install(void);
/* For commands without results to keep: signals act as before; one that was counted acts now. */
void cake_shutdown_restore(void);

/* Seconds of --max-runtime and --stop-before; -1: not given. */
typedef struct cake_time_limits {
    int64_t max_runtime, stop_before;
} cake_time_limits;

/* After cake_shutdown_install: finds the deadline on rank 0, and fails if no time is left. All ranks call it
 * first, and cake_shutdown_close even if it fails. Until cake_shutdown_loop a signal or the deadline ends the
 * process with status 75, whatever it waits for; so does a second signal after cake_shutdown_write, or one
 * that the loop does not act on for some seconds. */
cake_err cake_shutdown_open(const cake_time_limits *limits, const cake_comm *world);
void cake_shutdown_loop(void);  /* rank 0: begins to poll cake_shutdown_requested */
void cake_shutdown_write(void); /* rank 0: polls no more, and writes results */
/* Another thread calls on_exit if it ends the process before the loop. */
void cake_shutdown_on_exit(void (*on_exit)(void));
void cake_shutdown_close(void); /* signals act as before, unless one came */

/* Rank 0: seconds to the deadline; INFINITY: none. */
double cake_shutdown_seconds_left(void);
/* Rank 0, called often: whether to admit nothing new. Stays true once true; one message gives the reason. */
bool cake_shutdown_requested(void);
/* Whether a second signal came: wait for nothing. */
bool cake_shutdown_forced(void);

#endif
