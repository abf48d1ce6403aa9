/* SPDX-License-Identifier: Apache-2.0
 *
 * Seconds since some fixed moment. They never run backwards, whatever happens to the time of day.
 */
#include "base/clock.h"

#include <time.h>

double cake_clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
