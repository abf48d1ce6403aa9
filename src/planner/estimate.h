/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a run will take: the schedule's waves over the planned slices, at the share of each rank's rates
 * that kernels reach.
 */
#ifndef CAKE_PLANNER_ESTIMATE_H
#define CAKE_PLANNER_ESTIMATE_H

#include "planner/planning.h"
#include "planner/simulate.h"

/* One answer to a prompt, in tokens. */
typedef struct cake_workload_item {
    int n_prompt, computed;           /* of the prompt; of these, not in the prefix cache */
    int min_generated, max_generated; /* tokens generated; 0: scores or embeddings are wanted only */
    int score_from;                   /* the first token of the prompt that is scored; 0: none */
    int32_t *chain; /* [cake_schedule_chain_len(n_prompt)] owned prefix nodes, or NULL without prefixes */
} cake_workload_item;

/* The workload of a prompt file: the first answers one by one, and the sums over all. */
typedef struct cake_workload {
    cake_prefix_tree *prefixes; /* of the first answers; or NULL */
    cake_workload_item *first;  /* [n_first] owned */
    int n_first, cap;
    int64_t n;                                     /* answers */
    double computed, min_generated, max_generated; /* sums over all answers, in tokens */
} cake_workload;

/* Whether the next answer added will be one of the first, so that it needs a chain if there are prefixes. */
bool cake_workload_is_sampled(const cake_workload *workload);
void cake_workload_add(cake_workload *workload, const cake_workload_item *answer);
/* Fills a workload of n answers where the file is not known: prompts of `prompt` tokens
 * (CAKE_WORKLOAD_USUAL), three times as long as the answers. workload: zeros. */
enum { CAKE_WORKLOAD_USUAL = 384 };
void cake_workload_guess(const cake_planning *p, int64_t n, int prompt, cake_workload *workload);
void cake_workload_free(cake_workload *workload);

typedef struct cake_estimate {
    double seconds, generated; /* of the whole file */
} cake_estimate;

/* The part of one replica, and what was simulated of it. */
typedef struct cake_replica_estimate {
    double share;   /* of all requests */
    double seconds; /* simulated time of the first requests */
    int64_t waves;
} cake_replica_estimate;

/* Seconds that the slowest rank of a replica works on a wave of n_row rows of a prompt, or of generated ones,
 * each at the position of a usual workload. */
double cake_estimate_wave(const cake_planning *p, const cake_plan *plan, int n_row, bool prompt);
/* Seconds of a wave of n_row generated rows through all ranks of a replica, one after the other. */
double cake_estimate_pass(const cake_planning *p, const cake_plan *plan, int n_row);

/* The run time of replicas with these plans [planning->n_replica], from measured rates. Replicas take
 * requests as they become free, so all end at about the same time. longest: every answer has its maximum
 * length, else its minimum. replicas [n_replica] and busy [ranks of the cluster] (seconds that each rank
 * works on the simulated requests) may be NULL. */
cake_estimate cake_estimate_make(const cake_planning *p, const cake_plan *plans,
                                 const cake_workload *workload, bool longest, cake_replica_estimate *replicas,
                                 double *busy);

#endif
