/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a function. Out: a thread that runs it. Invariant: the caller's signal mask is the same afterwards.
 */
#include "base/thread.h"

#include <signal.h>

bool cake_thread_start(pthread_t *thread, size_t stack, void *(*work)(void *), void *arg)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (stack)
        pthread_attr_setstacksize(&attributes, stack);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(thread, &attributes, work, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return !failed;
}
