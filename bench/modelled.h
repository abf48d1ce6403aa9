/* SPDX-License-Identifier: Apache-2.0
 *
 * Stages without arithmetic: hops and the LM head sleep as long as they would compute, so that many ranks fit
 * on a few cpus. Waves, links, schedule and pages are real.
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

/* Kernels for an engine whose head takes as long as this model's; one engine per process. Adds the seconds of
 * the head to *spent. cost and spent outlive the engine. repeat: the text repeats
 * itself, but for one token in five. */
const cake_kernels *modelled_kernels(const cost_model *cost, double *spent, bool repeat);

#endif
