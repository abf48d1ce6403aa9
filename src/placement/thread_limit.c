/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a number. Out: as many waiting threads, or fewer.
 * Invariant: every thread that was started is joined.
 */
#include "placement/thread_limit.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"

struct cake_thread_limit {
    pthread_mutex_t gate; /* locked until the threads may end */
    pthread_t *thread;    /* [n] */
    int n;
};

static void *wait_at_gate(void *arg)
{
    cake_thread_limit *t = arg;
    pthread_mutex_lock(&t->gate);
    pthread_mutex_unlock(&t->gate);
    return NULL;
}

int cake_thread_limit_open(int n, cake_thread_limit **out)
{
    cake_thread_limit *t = *out = cake_alloc(1, sizeof *t);
    t->thread = cake_alloc((size_t)n, sizeof *t->thread);
    pthread_mutex_init(&t->gate, NULL);
    pthread_mutex_lock(&t->gate);
    while (t->n < n && !pthread_create(&t->thread[t->n], NULL, wait_at_gate, t))
        t->n++;
    return t->n;
}

void cake_thread_limit_close(cake_thread_limit *t)
{
    if (!t)
        return;
    pthread_mutex_unlock(&t->gate);
    for (int i = 0; i < t->n; i++)
        pthread_join(t->thread[i], NULL);
    pthread_mutex_destroy(&t->gate);
    free(t->thread);
    free(t);
}
