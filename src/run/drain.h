/* SPDX-License-Identifier: Apache-2.0
 *
 * When a run has to stop before its end: SIGTERM, SIGUSR1 or SIGUSR2 came, --max-runtime is over, the end of the Slurm job
 * is near. Rank 0 decides; the other ranks take no notice of the signals, which launchers pass to all.
 */
#ifndef CAKE_RUN_DRAIN_H
#define CAKE_RUN_DRAIN_H

#include <stdbool.h>

#include "link/world.h"
#include "run/options.h"

/* From here on signals are counted: called before MPI_Init, since a launcher that loses a rank in it waits for ever. */
void cake_drain_listen(void);
/* A command that has nothing to keep: signals do what they did before, one that came meanwhile does it now. */
void cake_drain_pass(void);

/* After cake_drain_listen: on rank 0 the time is looked for. All ranks call, before anything long, and close also where it
 * fails: there is no time left. */
cake_err cake_drain_open(const cake_options *options, const cake_world *world);
void cake_drain_close(void); /* signals do what they did before, unless one came */

/* Rank 0: seconds until a limit of time is due; INFINITY: none is known. */
double cake_drain_left(void);
/* Rank 0, often: nothing new is to be begun. True from then on; why is said once. */
bool cake_drain_due(void);
/* A second signal came: nothing is to be waited for. */
bool cake_drain_at_once(void);

#endif
