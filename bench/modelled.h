/* SPDX-License-Identifier: Apache-2.0
 *
 * Stages without arithmetic: what a hop and the root's head would take is waited for, asleep, so that many
 * ranks fit a few cpus. Waves, links, schedule and pages are the real ones.
 */
#ifndef CAKE_BENCH_MODELLED_H
#define CAKE_BENCH_MODELLED_H

#include "bench/cost.h"
#include "engine/pipeline.h"
#include "kernels/kernels.h"

typedef struct modelled_hop {
    const cost_model *cost;
    int first, count;
    double *spent; /* [n_layer] seconds of each layer so far */
} modelled_hop;

/* hop outlives it. */
cake_hop_work modelled_work(modelled_hop *hop);

/* What a root needs, with a head that takes as long as this model's: one root a process. *spent grows by what
 * the head took; both outlive the root. */
const cake_kernels *modelled_kernels(const cost_model *cost, double *spent);

#endif
