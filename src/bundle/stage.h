/* SPDX-License-Identifier: Apache-2.0
 *
 * Cuts a model into bundles, one directory for each rank.
 */
#ifndef CAKE_BUNDLE_STAGE_H
#define CAKE_BUNDLE_STAGE_H

#include "link/comm.h"
#include "planner/rank.h"

typedef struct cake_stage_options {
    const char *model;      /* the directory of the whole model */
    const char *name;       /* name of the model in the bundles */
    const char *directory;  /* output directory */
    int n_rank;             /* --ranks; 0: as many as this job has */
    cake_rank_options rank; /* options of the partition */
} cake_stage_options;

/* All ranks call. Returns the exit code that they agreed on. */
cake_err cake_stage(const cake_stage_options *options, const cake_comm *world);

#endif
