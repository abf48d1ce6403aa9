/* SPDX-License-Identifier: Apache-2.0
 *
 * A stream of items worked on by several threads, read and finished in order. The caller's thread reads and
 * finishes, and works while it would have to wait.
 */
#ifndef CAKE_BASE_WORKER_POOL_H
#define CAKE_BASE_WORKER_POOL_H

#include "base/err.h"

typedef struct cake_worker_job {
    void *arg;
    /* Fills an item, by the caller's thread. CAKE_OK, CAKE_END (nothing in it) or CAKE_ERR_FATAL. */
    cake_err (*read)(void *arg, void *item);
    /* Works on an item, in any thread; arg is shared. */
    void (*work)(void *arg, void *item);
    /* Takes an item's result, by the caller's thread, in the order of reading. */
    cake_err (*finish)(void *arg, void *item);
} cake_worker_job;

/* Until read says CAKE_END (then CAKE_OK) or something fails (then that). items [n_item]: what is under way
 * at most, owned by the caller; twice n_thread keep all busy. Fewer threads than asked for are no failure. */
cake_err cake_worker_pool_run(const cake_worker_job *job, int n_thread, void **items, int n_item);

#endif
