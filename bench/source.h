/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests without a file: prompts of random token ids, answers of a fixed length that go nowhere.
 */
#ifndef CAKE_BENCH_SOURCE_H
#define CAKE_BENCH_SOURCE_H

#include "bench/cost.h"
#include "run/root.h"

typedef struct source {
    cost_load load;
    int n_vocab;
    int given;         /* sequences so far */
    int64_t generated; /* tokens */
} source;

/* s outlives the conductor. A request that fails fails the run, and is said. */
cake_conductor source_conductor(source *s);

#endif
