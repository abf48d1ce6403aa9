/* SPDX-License-Identifier: Apache-2.0
 *
 * In: items. Out: the same items, after the workers.
 * Invariant: finished <= taken <= read <= finished + n_item, counted from the start; item i lies in items[i %
 * n_item].
 */
#include "request/worker_pool.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"

typedef struct pool {
    const cake_worker_job *job;
    void **items;
    bool *done; /* [n_item] */
    int n_item;
    int64_t read, taken, finished;
    bool stop;
    pthread_mutex_t lock;
    pthread_cond_t more, ready; /* more: an item can be taken; ready: one is done */
} pool;

/* Works on the next item that nobody has taken. Called with the lock, which it releases meanwhile. */
static void work_one(pool *c)
{
    int at = (int)(c->taken++ % c->n_item);
    pthread_mutex_unlock(&c->lock);
    c->job->work(c->job->arg, c->items[at]);
    pthread_mutex_lock(&c->lock);
    c->done[at] = true;
    pthread_cond_signal(&c->ready);
}

static void *worker(void *arg)
{
    pool *c = arg;
    pthread_mutex_lock(&c->lock);
    while (!c->stop) {
        if (c->taken < c->read)
            work_one(c);
        else
            pthread_cond_wait(&c->more, &c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* One step of the caller's thread, called with the lock. *ended: nothing more to read. */
static cake_err step(pool *c, bool *ended)
{
    cake_err err = CAKE_OK;
    int oldest = (int)(c->finished % c->n_item), next = (int)(c->read % c->n_item);
    if (c->finished < c->read && c->done[oldest]) {
        pthread_mutex_unlock(&c->lock);
        err = c->job->finish(c->job->arg, c->items[oldest]);
        pthread_mutex_lock(&c->lock);
        c->done[oldest] = false;
        c->finished++;
    } else if (!*ended && c->read < c->finished + c->n_item) {
        pthread_mutex_unlock(&c->lock);
        err = c->job->read(c->job->arg, c->items[next]);
        pthread_mutex_lock(&c->lock);
        *ended = err != CAKE_OK;
        c->read += !err;
        pthread_cond_signal(&c->more);
    } else if (c->taken < c->read) {
        work_one(c);
    } else {
        pthread_cond_wait(&c->ready, &c->lock);
    }
    return err == CAKE_END ? CAKE_OK : err;
}

cake_err cake_worker_pool_run(const cake_worker_job *job, int n_thread, void **items, int n_item)
{
    pool c = {.job = job,
              .items = items,
              .n_item = n_item,
              .done = cake_alloc((size_t)n_item, sizeof *c.done),
              .lock = PTHREAD_MUTEX_INITIALIZER,
              .more = PTHREAD_COND_INITIALIZER,
              .ready = PTHREAD_COND_INITIALIZER};
    pthread_t *threads = cake_alloc((size_t)n_thread, sizeof *threads);
    int started = 0;
    while (started < n_thread - 1 && !pthread_create(&threads[started], NULL, worker, &c))
        started++;
    cake_err err = CAKE_OK;
    bool ended = false;
    pthread_mutex_lock(&c.lock);
    while (!err && !(ended && c.finished == c.read))
        err = step(&c, &ended);
    c.stop = true;
    pthread_cond_broadcast(&c.more);
    pthread_mutex_unlock(&c.lock);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    free(c.done);
    return err;
}
