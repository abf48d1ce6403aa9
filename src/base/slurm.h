/* SPDX-License-Identifier: Apache-2.0
 *
 * What Slurm says about jobs: by the environment of its own, else by its commands, asked once and not for
 * long.
 */
#ifndef CAKE_BASE_SLURM_H
#define CAKE_BASE_SLURM_H

#include <stdbool.h>
#include <stdint.h>

const char *cake_slurm_job(void);      /* the number of this job; "" outside of one */
int64_t cake_slurm_restarts(void);     /* how often it was requeued */
bool cake_slurm_over(const char *job); /* it is certain that this one runs no more */
/* When this job ends, seconds since 1970; 0: it has no end, or none that can be learnt. */
int64_t cake_slurm_end(void);

#endif
