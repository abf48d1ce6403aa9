/* SPDX-License-Identifier: Apache-2.0
 *
 * One run at a time writes a result file: a lock file that says who. It is made by O_EXCL, which holds on NFS
 * and Lustre, too, where locks on descriptors may not. One that a dead run has left is taken over: a process
 * of this host that is no more, a Slurm job that has ended or was requeued since.
 */
#ifndef CAKE_RECORD_LOCK_H
#define CAKE_RECORD_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct cake_lock cake_lock;

/* Whose a lock is. */
typedef struct cake_holder {
    char host[256], job[24]; /* job: of Slurm, or "" */
    int64_t pid;
    bool over; /* it is certain that it runs no more */
    bool here; /* it is on this host, so that it is certain that it runs, if it is not over */
} cake_holder;

/* Who has it, without touching it; false: nobody, or it cannot be read. May ask Slurm. */
bool cake_lock_look(const char *path, cake_holder *out);
/* path: of the lock file. Says who has it, or why it cannot be made. */
cake_err cake_lock_take(const char *path, cake_lock **out);
void cake_lock_release(cake_lock *lock); /* NULL is fine */

/* The lock that this process holds, if any, goes: it ends, and nobody can release it in order. Whoever
 * takes one afterwards waits for the end. Any thread. */
void cake_lock_abandon(void);

#endif
