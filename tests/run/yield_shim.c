/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded by tests/run/slurm.sh, whose ten nodes are one machine: a rank that waits sleeps for YIELD_US
 * microseconds where it would only offer its CPU to others. Long sleeps make a slow run that computes little.
 */
#include <sched.h>
#include <stdlib.h>
#include <time.h>

int sched_yield(void)
{
    const char *us = getenv("YIELD_US");
    return nanosleep(&(struct timespec){.tv_nsec = (us ? atol(us) : 200) * 1000}, NULL);
}
