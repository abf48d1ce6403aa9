/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands. Each returns the exit code that all ranks agreed on.
 */
#ifndef CAKE_RUN_RUN_H
#define CAKE_RUN_RUN_H

#include "base/err.h"
#include "link/comm.h"
#include "options/options.h"

/* Runs the command that the options name; argc and argv go into the report. */
cake_err cake_command(const cake_options *options, const cake_comm *world, int argc, char **argv);

cake_err cake_cmd_run(const cake_options *options, const cake_comm *world, int argc, char **argv);
cake_err cake_cmd_plan(const cake_options *options, const cake_comm *world); /* `plan` */
cake_err cake_cmd_tokenize(const cake_options *options);                     /* rank 0 only */
cake_err cake_cmd_merge(const cake_options *options);                        /* rank 0 only */
cake_err cake_cmd_status(const cake_options *options);                       /* rank 0 only */
cake_err cake_cmd_pull(const cake_options *options);                         /* rank 0 only */
cake_err cake_cmd_list(const cake_options *options);                         /* rank 0 only */
cake_err cake_cmd_rm(const cake_options *options);                           /* rank 0 only */
cake_err cake_cmd_info(const cake_options *options);                         /* rank 0 only */

#endif
