/* SPDX-License-Identifier: Apache-2.0
 *
 * A stream of items: several threads work on them, the caller's thread reads them and finishes them in order.
 * It works, too, while it would have to wait.
 */
#ifndef CAKE_REQUEST_WORKER_POOL_H
#define CAKE_REQUEST_WORKER_POOL_H

#include "base/err.h"

typedef struct cake_worker_job {
    void *arg;
    /* Fills an item, in the caller's thread. CAKE_OK, CAKE_END (no more items) or CAKE_ERR_FATAL. */
    cake_err (*read)(void *arg, void *item);
    /* Works on an item, in any thread; arg is shared by all threads. */
    void (*work)(void *arg, void *item);
    /* Takes an item's result, in the caller's thread, in the order of reading. */
    cake_err (*finish)(void *arg, void *item);
} cake_worker_job;

/* Runs until read returns CAKE_END (then CAKE_OK) or something fails (then its error). items [n_item]: those
 * in flight, owned by the caller; 2 * n_thread keep all threads busy. Fewer threads than asked for are no
 * error. */
cake_err cake_worker_pool_run(const cake_worker_job *job, int n_thread, void **items, int n_item);

#endif
