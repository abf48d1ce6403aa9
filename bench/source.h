/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests without a file: prompts of random token ids, answers of a fixed length that are dropped.
 */
#ifndef CAKE_BENCH_SOURCE_H
#define CAKE_BENCH_SOURCE_H

#include "bench/cost.h"
#include "engine/engine.h"

/* The part of a run that only generates: it begins with the second round after every sequence has its first
 * token. A round gives each running sequence a token. */
typedef struct source_steady {
    int *got, *round_of; /* [seqs] tokens of each so far; the round of its latest */
    int *then;           /* [seqs] tokens of each before that part */
    int round, begun;    /* current round; sequences with a token */
    int seen;            /* 2: then and since are set */
    double since, until; /* cake_clock_now() before its first round, after the latest token */
} source_steady;

typedef struct source {
    cost_load load;
    int n_vocab;
    int given;             /* sequences so far */
    int64_t generated;     /* tokens */
    source_steady *steady; /* borrowed; or NULL */
} source;

source_steady *source_steady_open(int seqs);
void source_steady_close(source_steady *steady); /* NULL is fine */

/* s outlives the io. A request that fails is reported and fails the run. */
cake_sequence_io source_io(source *s);

#endif
