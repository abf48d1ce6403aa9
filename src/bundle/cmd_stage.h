/* SPDX-License-Identifier: Apache-2.0
 *
 * The command `stage`.
 */
#ifndef CAKE_BUNDLE_CMD_STAGE_H
#define CAKE_BUNDLE_CMD_STAGE_H

#include "link/comm.h"
#include "options/options.h"

/* All ranks call. Returns the exit code that they agreed on. */
cake_err cake_cmd_stage(const cake_options *options, const cake_comm *world);

#endif
