/* SPDX-License-Identifier: Apache-2.0
 *
 * -m with bundles (`stage`): each rank reads its own bundle, and the plan is the one they were made for.
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
    char *dir;  /* owned; NULL: a whole model, or none */
    char *name; /* owned; name of the whole model */
} cake_located;

/* Finds this rank's bundle; checks its files and the number of bundles. All ranks call, before anything is
 * read. */
cake_err cake_bundle_locate(const cake_locate_options *options, const cake_comm *world, cake_located *out);

#endif
