/* SPDX-License-Identifier: Apache-2.0
 *
 * What the exit status means, said before a launcher makes a noise about it.
 */
#ifndef CAKE_REPORT_ENDING_H
#define CAKE_REPORT_ENDING_H

#include <stdint.h>

#include "base/err.h"

/* One line at most, on rank 0 under a launcher, while all ranks are still there: of statuses 3 and 75, which
 * are no failures of the program. failed: requests; where: the file that results are kept in, or NULL. */
void cake_ending_say(cake_err err, int64_t failed, const char *where);

#endif
