/* SPDX-License-Identifier: Apache-2.0
 *
 * Assigns requests to replicas. Pure: it knows lengths, common prefixes and the progress of each replica;
 * never text, messages or time. It decides who computes an answer and has no influence on the answer.
 *
 * Requests wait in a bounded window. A replica gets a few at a time, as soon as it has begun nearly all of
 * its own: a replica that is slow, short of memory or busy with long answers gets fewer. Prompts with a
 * common prefix go to the replica that has it cached, unless another one would idle.
 */
#ifndef CAKE_DISPATCH_POLICY_H
#define CAKE_DISPATCH_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/progress.h"

typedef struct cake_dispatch_policy cake_dispatch_policy;

enum { CAKE_DISPATCH_MAX = 4 }; /* requests per message */

/* n_slot: sequences at a time; rows: rows of one wave of each lane. */
typedef struct cake_replica_capacity {
    int n_slot;
    int64_t rows;
} cake_replica_capacity;

/* capacity [n_replica], copied. */
cake_dispatch_policy *cake_dispatch_policy_open(int n_replica, const cake_replica_capacity *capacity);
void cake_dispatch_policy_close(cake_dispatch_policy *policy); /* NULL is fine; items stay the caller's */

/* True if one more request may be added. */
bool cake_dispatch_policy_can_add(const cake_dispatch_policy *policy);
/* Adds an item with the prompt ids [n_prompt]; prompts of different salts share no prefix. */
void cake_dispatch_policy_add(cake_dispatch_policy *policy, void *item, int64_t salt, const int32_t *ids,
                              int n_prompt);
/* No further item will be added. */
void cake_dispatch_policy_end(cake_dispatch_policy *policy);

/* Assigns the next *n waiting items, item [CAKE_DISPATCH_MAX], to the replica that is returned; -1: no
 * replica should get more now. */
int cake_dispatch_policy_pick(cake_dispatch_policy *policy, void **item, int *n);
/* Sets a replica's progress. Finished items are reported one by one, by cake_dispatch_policy_done. */
void cake_dispatch_policy_update(cake_dispatch_policy *policy, int replica,
                                 const cake_replica_progress *progress);
void cake_dispatch_policy_done(cake_dispatch_policy *policy, int replica);

/* Removes and returns any waiting item; NULL: none waits. For the end of a run that failed. */
void *cake_dispatch_policy_cancel(cake_dispatch_policy *policy);

int cake_dispatch_policy_waiting(const cake_dispatch_policy *policy); /* items that are not assigned */
/* Items assigned to replica r so far. */
int64_t cake_dispatch_policy_assigned(const cake_dispatch_policy *policy, int r);
/* True if nothing waits, nothing will be added, and all assigned items are done. */
bool cake_dispatch_policy_over(const cake_dispatch_policy *policy);

#endif
