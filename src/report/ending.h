/* SPDX-License-Identifier: Apache-2.0
 *
 * Explains the exit status before the launcher reports it as a failure.
 */
#ifndef CAKE_REPORT_ENDING_H
#define CAKE_REPORT_ENDING_H

#include <stdint.h>

#include "base/err.h"

/* Prints at most one line, for statuses 3 and 75, which are no failures of the program. Call on rank 0 while
 * all ranks still run. failed: requests; where: the result file, or NULL. */
void cake_ending_say(cake_err err, int64_t failed, const char *where);

#endif
