/* SPDX-License-Identifier: Apache-2.0
 *
 * A lock file that names its owner ensures that only one run writes a result file. It is created with O_EXCL,
 * which also works on NFS and Lustre, where locks on descriptors may not. A lock left by a dead run is taken
 * over: its process on this host is gone, or its Slurm job has ended or was requeued.
 */
#ifndef CAKE_RECORD_LOCK_H
#define CAKE_RECORD_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct cake_lock cake_lock;

/* The owner of a lock. */
typedef struct cake_holder {
    char host[256], job[24]; /* job: Slurm job id or "" */
    int64_t pid;
    bool over; /* certainly not running any more */
    bool here; /* on this host; together with !over it is certainly running */
} cake_holder;

/* Reads the owner without changing the lock. False: no lock, or unreadable. May call Slurm. */
bool cake_lock_look(const char *path, cake_holder *out);
/* path: of the lock file. Fails with a message that names the owner or the cause. */
cake_err cake_lock_take(const char *path, cake_lock **out);
void cake_lock_release(cake_lock *lock); /* NULL is fine */

/* Removes the lock of this process, if any, when the process ends without a regular release. Later calls of
 * cake_lock_take wait for the end of the process. Any thread may call. */
void cake_lock_abandon(void);

#endif
