/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests without a file: prompts of random token ids, answers of a fixed length that go nowhere.
 */
#ifndef CAKE_BENCH_SOURCE_H
#define CAKE_BENCH_SOURCE_H

#include "bench/cost.h"
#include "engine/engine.h"

/* The part of a run in which nothing but generated tokens is computed: from the second round on in which
 * every sequence has had its first one. A round gives each sequence that runs a token. */
typedef struct source_steady {
    int *got, *round_of; /* [seqs] tokens of each so far; the round of its latest */
    int *then;           /* [seqs] tokens of each before that part */
    int round, begun;    /* now; sequences that have a token */
    int seen;            /* 2: then and since are known */
    double since, until; /* cake_clock_now() before its first round, after the latest token */
} source_steady;

typedef struct source {
    cost_load load;
    int n_vocab;
    int given;             /* sequences so far */
    int64_t generated;     /* tokens */
    source_steady *steady; /* borrowed; or NULL: nobody asks */
} source;

source_steady *source_steady_open(int seqs);
void source_steady_close(source_steady *steady); /* NULL is fine */

/* s outlives the conductor. A request that fails fails the run, and is said. */
cake_sequence_io source_conductor(source *s);

#endif
