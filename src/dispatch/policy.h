/* SPDX-License-Identifier: Apache-2.0
 *
 * Which replica gets which requests. Pure: it knows lengths, which prompts begin alike, and how far each
 * replica is; never text, messages or time. The dispatcher asks; what it answers changes who computes an
 * answer, and never the answer.
 *
 * Requests that were read wait in a bounded window. A replica is given a few at a time, as soon as those
 * that it has are nearly all begun: who is slow, short of memory or busy with long answers begins fewer
 * and is given fewer. Those that begin alike go to the replica that has the beginning, unless it would
 * let another one stand idle.
 */
#ifndef CAKE_DISPATCH_POLICY_H
#define CAKE_DISPATCH_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/progress.h"

typedef struct cake_dispatch_policy cake_dispatch_policy;

enum { CAKE_DISPATCH_MAX = 4 }; /* requests that are given at once, at most */

/* Of a replica: sequences that it works on at a time, and rows of a turn of its lanes. */
typedef struct cake_replica_capacity {
    int n_slot;
    int64_t rows;
} cake_replica_capacity;

/* capacity [n_replica], copied. */
cake_dispatch_policy *cake_dispatch_policy_open(int n_replica, const cake_replica_capacity *capacity);
void cake_dispatch_policy_close(cake_dispatch_policy *policy); /* NULL is fine; items stay the caller's */

/* Whether one more request may wait. */
bool cake_dispatch_policy_room(const cake_dispatch_policy *policy);
/* An item waits whose prompt is ids [n_prompt]; prompts of different salts have nothing in common. */
void cake_dispatch_policy_add(cake_dispatch_policy *policy, void *item, int64_t salt, const int32_t *ids,
                              int n_prompt);
/* No further item will be added. */
void cake_dispatch_policy_end(cake_dispatch_policy *policy);

/* The next portion: item [CAKE_DISPATCH_MAX] is filled with *n of those that wait, which are the
 * replica's that is returned from now on. -1: nobody should have more now. */
int cake_dispatch_policy_pick(cake_dispatch_policy *policy, void **item, int *n);
/* How far a replica is; what it has finished is told one by one. */
void cake_dispatch_policy_update(cake_dispatch_policy *policy, int replica,
                                 const cake_replica_progress *progress);
void cake_dispatch_policy_done(cake_dispatch_policy *policy, int replica);

/* Any item that waits, which waits no longer; NULL: none does. For the end of a run that failed. */
void *cake_dispatch_policy_cancel(cake_dispatch_policy *policy);

int cake_dispatch_policy_waiting(const cake_dispatch_policy *policy); /* items that nobody has */
/* Items that replica r was given since the beginning. */
int64_t cake_dispatch_policy_given(const cake_dispatch_policy *policy, int r);
/* Nothing waits, nothing will be added, and all that was given is done. */
bool cake_dispatch_policy_over(const cake_dispatch_policy *policy);

#endif
