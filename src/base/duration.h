/* SPDX-License-Identifier: Apache-2.0
 *
 * Durations, as users write and read them.
 */
#ifndef CAKE_BASE_DURATION_H
#define CAKE_BASE_DURATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* Seconds of "90", "90s", "15m", "2h", "1d", or in Slurm's form "12:00" (minutes and seconds), "1:30:00",
 * "1-12", "1-12:00:00". False, and *into unchanged, for anything else. */
bool cake_duration_read(const char *text, int64_t *into);
/* Appends seconds (0 or more) as 0:00:45, 12:30:00, 2-00:00:00. */
void cake_duration_add(cake_buf *out, double seconds);

#endif
