/* SPDX-License-Identifier: Apache-2.0
 *
 * In: parsed options. Out: the exit code of the command they name, the same on all ranks.
 * Invariant: commands of `alone` run on world rank 0 only; other ranks wait for its exit code.
 */
#include <stdio.h>
#include <string.h>

#include "base/version.h"
#include "bundle/stage.h"
#include "options/check_paths.h"
#include "run/from_options.h"
#include "run/run.h"

static cake_err help(const cake_options *options)
{
    cake_options_help(options->help_of);
    return CAKE_OK;
}

static cake_err version(const cake_options *options)
{
    (void)options;
    printf("cake-mpi %s\n", cake_version());
    return CAKE_OK;
}

/* The commands that a login node runs: one process, no MPI. */
static const struct {
    const char *name;
    cake_err (*run)(const cake_options *options);
} alone[] = {{"tokenize", cake_cmd_tokenize},
             {"info", cake_cmd_info},
             {"merge", cake_cmd_merge},
             {"status", cake_cmd_status},
             {"pull", cake_cmd_pull},
             {"list", cake_cmd_list},
             {"rm", cake_cmd_rm},
             {"help", help},
             {"version", version}};

static cake_err stage(const cake_options *options, const cake_comm *world)
{
    char name[CAKE_MODEL_NAME];
    return cake_stage(&(cake_stage_options){.model = options->model,
                                            .name = cake_options_model_name(options, name),
                                            .directory = options->directory,
                                            .n_rank = (int)options->ranks,
                                            .rank = cake_rank_options_from(options)},
                      world);
}

cake_err cake_command(const cake_options *options, const cake_comm *world, int argc, char **argv)
{
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++)
        if (!strcmp(alone[i].name, options->command))
            return cake_paths_flush(
                world, cake_comm_agree(world, world->rank == 0 ? alone[i].run(options) : CAKE_OK));
    if (!strcmp(options->command, "plan"))
        return cake_paths_flush(world, cake_cmd_plan(options, world));
    if (!strcmp(options->command, "stage"))
        return stage(options, world);
    return cake_cmd_run(options, world, argc, argv);
}
