/* SPDX-License-Identifier: Apache-2.0
 *
 * The system's limits on a process (setrlimit(2)): soft limits are raised as far as the hard ones allow.
 */
#ifndef CAKE_BASE_LIMITS_H
#define CAKE_BASE_LIMITS_H

#include <stdint.h>

#include "base/err.h"

/* Raises the limits of open files and of the stack, for new threads too. Fails with a message if the stack
 * stays too small. To be called from the main thread before there are others. */
cake_err cake_limits_raise(void);
/* Number of further files that this process may open. */
int64_t cake_limits_files(void);

#endif
