/* SPDX-License-Identifier: Apache-2.0
 *
 * Options, run, the one exit code that all ranks agreed on.
 */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "bench/bench.h"
#include "planner/consistency.h"
#include "run/from_options.h"
#include "run/run.h"
#include "watch/shutdown.h"

/* Mostly every rank finds the same fault in the command line: rank 0 says so. */
static cake_err parse(int argc, char **argv, const cake_comm *world, cake_options *options)
{
    cake_buf unsaid = {0};
    if (world->rank > 0)
        cake_log_capture(&unsaid);
    cake_err err = cake_options_parse(argc, argv, options);
    cake_log_capture(NULL);
    int64_t first = err;
    cake_comm_bcast(world, &first, sizeof first);
    if (err && !first)
        fputs(unsaid.data, stderr);
    cake_buf_free(&unsaid);
    return cake_comm_agree(world, err);
}

int main(int argc, char **argv)
{
    cake_comm world;
    cake_options options;
    cake_file_guard();
    cake_shutdown_install();
    cake_err err = cake_limits_raise();
    if (!err)
        err = cake_comm_open(&argc, &argv, &world);
    if (err)
        return err;
    if ((err = cake_consistency_build(&world))) {
        cake_comm_close();
        return err;
    }
    cake_options_broadcast(&world);
    err = parse(argc, argv, &world, &options);
    if (!err && strcmp(options.command, "run"))
        cake_shutdown_restore();
    if (!err)
        err = cake_options_agree(&options, &world);
    if (!err) {
        if (world.reordered && !world.rank)
            cake_log(CAKE_INFO, "link",
                     "ranks are numbered host by host here, not as the launcher reordered them out");
        err = cake_options_locate_model(&options, &world);
    }
    if (!err)
        err = strcmp(options.command, "bench") ? cake_command(&options, &world, argc, argv)
                                               : cake_bench_run(&options, &world);
    cake_options_free(&options);
    cake_comm_close();
    return err;
}
