/* SPDX-License-Identifier: Apache-2.0
 *
 * What the system allows a process (setrlimit(2)): soft limits are raised as far as they may be.
 */
#ifndef CAKE_BASE_LIMITS_H
#define CAKE_BASE_LIMITS_H

#include <stdint.h>

#include "base/err.h"

/* Raises the limits of open files and of the stack, that of threads to come, too. Says so if the stack
 * stays too small. Called from the main thread, before there are others. */
cake_err cake_limits_raise(void);
/* How many more files this process may open. */
int64_t cake_limits_files(void);

#endif
