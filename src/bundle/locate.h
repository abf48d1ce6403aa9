/* SPDX-License-Identifier: Apache-2.0
 *
 * -m where it leads to bundles (`stage`): each rank reads its own, and the plan is the one they were made
 * for.
 */
#ifndef CAKE_BUNDLE_LOCATE_H
#define CAKE_BUNDLE_LOCATE_H

#include "link/comm.h"
#include "model/bundle.h"

typedef struct cake_locate_options {
    const char *model; /* the directory that the user gave */
    int n_replica;     /* --replicas; 0: not given */
    int n_rank;        /* --ranks; 0: not given */
    bool any;          /* any rank's bundle will do */
} cake_locate_options;

/* This rank's bundle. */
typedef struct cake_located {
    char *dir;  /* owned; NULL: the model is whole, or there is none */
    char *name; /* owned; of the whole model */
} cake_located;

/* All ranks call, before anything is read. Finds this rank's bundle and checks its files and the number of
 * bundles. */
cake_err cake_bundle_locate(const cake_locate_options *options, const cake_comm *world, cake_located *out);

#endif
