/* SPDX-License-Identifier: Apache-2.0
 *
 * The command `stage`.
 */
#ifndef CAKE_BUNDLE_STAGING_H
#define CAKE_BUNDLE_STAGING_H

#include "link/comm.h"
#include "options/options.h"

/* All ranks call. Returns the exit code that they agreed on. */
cake_err cake_staging(const cake_options *options, const cake_comm *world);

#endif
