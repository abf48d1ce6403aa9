/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts about Slurm jobs, from the environment of this one, else from Slurm's commands, which are called once
 * and with a time limit.
 */
#ifndef CAKE_BASE_SLURM_H
#define CAKE_BASE_SLURM_H

#include <stdbool.h>
#include <stdint.h>

const char *cake_slurm_job(void);      /* the number of this job; "" outside of one */
int64_t cake_slurm_restarts(void);     /* how often this job was requeued */
bool cake_slurm_over(const char *job); /* whether the job has certainly ended */
/* When this job ends, seconds since 1970; 0: no end, or unknown. */
int64_t cake_slurm_end(void);

#endif
