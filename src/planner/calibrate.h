/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast each rank computes and reads memory. Results never depend on it.
 */
#ifndef CAKE_PLANNER_CALIBRATE_H
#define CAKE_PLANNER_CALIBRATE_H

#include "link/comm.h"
#include "planner/rank.h"

/* The user's options. */
typedef struct cake_calibrate_options {
    const char *rates;         /* --rates; NULL: not given */
    const char *keep;          /* --keep-rates; NULL: not given */
    int threads;               /* --threads; 0: not given */
    bool plan;                 /* only plan: the run may be on other hosts */
    bool report;               /* also measure the peaks for a report */
    void (*settle)(void *arg); /* called before measuring: ends what else computes here; NULL: nothing does */
    void *arg;
} cake_calibrate_options;

/* Fills the cluster's rates, speeds and balance, the input's cost, and the peaks of this rank's report: from
 * --rates or by measuring, unless nothing depends on them. All ranks call, after threads and kernels are
 * chosen and while these are idle. */
cake_err cake_calibrate(const cake_calibrate_options *options, const cake_comm *world, cake_rank *me);
/* With --weights-memory, sets the input's rates of reading weights for waves: those of the slowest rank. All
 * ranks call, after cluster and layers are known. */
void cake_calibrate_reading(const cake_comm *world, cake_rank *me);

#endif
