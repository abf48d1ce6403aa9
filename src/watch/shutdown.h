/* SPDX-License-Identifier: Apache-2.0
 *
 * When a run has to stop before its end: SIGTERM, SIGUSR1, SIGUSR2, SIGHUP or SIGXCPU came, --max-runtime
 * is over, the end of the Slurm job is near. Rank 0 decides; the other ranks take no notice of the
 * signals, which launchers pass to all.
 */
#ifndef CAKE_WATCH_SHUTDOWN_H
#define CAKE_WATCH_SHUTDOWN_H

#include <stdbool.h>

#include "link/comm.h"
#include "options/options.h"

/* From here on signals are only counted. Called before MPI_Init, since a launcher that loses a rank within it
 * waits for ever. */
void cake_shutdown_install(void);
/* For commands that have nothing to save: signals act as they did before; one that came meanwhile acts now.
 * */
void cake_shutdown_restore(void);

/* After cake_shutdown_install: finds out on rank 0 when time is up. All ranks call it, before anything
 * long, and call cake_shutdown_close even if it fails: then there is no time left. From here on to
 * cake_shutdown_loop a signal, or the end of the time, ends the process with status 75, whatever it waits
 * for; so does a second signal behind cake_shutdown_write, or one that the loop does not heed for some
 * seconds. */
cake_err cake_shutdown_open(const cake_options *options, const cake_comm *world);
void cake_shutdown_loop(void);  /* rank 0: cake_shutdown_requested is asked from now on */
void cake_shutdown_write(void); /* rank 0: no more */
/* What is to be called, by another thread, before the process ends before its loop. */
void cake_shutdown_on_exit(void (*ended)(void));
void cake_shutdown_close(void); /* signals act as they did before, unless one came */

/* Rank 0: seconds until the run has to stop; INFINITY: no limit is known. */
double cake_shutdown_seconds_left(void);
/* Rank 0, called often: whether nothing new is to be begun. Once true it stays true; the reason is said once.
 * */
bool cake_shutdown_requested(void);
/* Whether a second signal came: nothing is to be waited for. */
bool cake_shutdown_forced(void);

#endif
