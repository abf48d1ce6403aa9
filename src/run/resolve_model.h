/* SPDX-License-Identifier: Apache-2.0
 *
 * -m with a name of the hub: where `pull` has put the model. Nothing is downloaded here.
 */
#ifndef CAKE_RUN_RESOLVE_MODEL_H
#define CAKE_RUN_RESOLVE_MODEL_H

#include "link/comm.h"
#include "options/options.h"

/* If -m is such a name and no file or directory is called so, sets options->model to the snapshot's directory
 * and options->pulled to its origin. All ranks read the commit that rank 0 found. All ranks call. */
cake_err cake_resolve_model(cake_options *options, const cake_comm *world);

#endif
