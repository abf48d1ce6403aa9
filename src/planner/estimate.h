/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a run will take: the schedule's waves over the planned slices, at what kernels reach of each
 * rank's rates.
 */
#ifndef CAKE_PLANNER_ESTIMATE_H
#define CAKE_PLANNER_ESTIMATE_H

#include "planner/planning.h"
#include "planner/simulate.h"

/* One answer to a prompt, in tokens. */
typedef struct cake_workload_item {
    int n_prompt, computed; /* of the prompt; of these not shared with prompts before */
    int least, most;        /* generated */
    int flags;              /* CAKE_SEQ_SCORED */
    int32_t *chain;         /* [cake_schedule_chain(n_prompt)] owned, or NULL where nothing is shared */
} cake_workload_item;

/* What a file asks for. Of large files the first answers are looked at one by one, of all others the sums. */
typedef struct cake_workload {
    cake_prefix_tree *prefixes; /* of the first ones; or NULL */
    cake_workload_item *first;  /* [n_first] owned */
    int n_first, cap;
    int64_t n; /* answers */
    double computed, fewest,
        most; /* sums over all answers of what cake_workload_item has of each, in tokens */
} cake_workload;

/* Whether the next answer will be among the first: it needs a chain if there are prefixes. */
bool cake_workload_is_sampled(const cake_workload *workload);
void cake_workload_add(cake_workload *workload, const cake_workload_item *answer);
/* n answers to what may be asked where nothing is known: prompts of so many tokens (CAKE_WORKLOAD_USUAL),
 * three times as long as answers. workload: zeros. */
enum { CAKE_WORKLOAD_USUAL = 384 };
void cake_workload_guess(const cake_planning *p, int64_t n, int prompt, cake_workload *workload);
void cake_workload_free(cake_workload *workload);

typedef struct cake_estimate {
    double seconds, generated; /* of the whole file */
} cake_estimate;

/* What a replica does of it, and what was looked at of that. */
typedef struct cake_replica_estimate {
    double share;   /* of all requests */
    double seconds; /* that the first requests take, which are looked at one by one */
    int64_t waves;
} cake_replica_estimate;

/* The run time of replicas with these plans [planning->n_replica], from measured rates. Replicas take
 * requests as they get free, so all end at about the same time. most: answers are as long as they may be,
 * else as short. looks [n_replica] and busy [ranks of the cluster] (seconds of work of each in the
 * sampled requests) may be NULL. */
cake_estimate cake_estimate_make(const cake_planning *p, const cake_plan *plans,
                                 const cake_workload *workload, bool most, cake_replica_estimate *looks,
                                 double *busy);

#endif
