/* SPDX-License-Identifier: Apache-2.0
 *
 * Invariant: the thread touches only its own struct and the descriptor, and blocks all signals.
 */
#include "record/fsync_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"

#define SECONDS 2

struct cake_fsync_thread {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    int fd, error;
    bool dirty, stop;
};

static void *work(void *arg)
{
    cake_fsync_thread *sync = arg;
    pthread_mutex_lock(&sync->mutex);
    while (!sync->stop) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += SECONDS;
        pthread_cond_timedwait(&sync->wake, &sync->mutex, &until);
        if (!sync->dirty || sync->error)
            continue;
        sync->dirty = false;
        pthread_mutex_unlock(&sync->mutex);
        int error = fdatasync(sync->fd) ? errno : 0;
        pthread_mutex_lock(&sync->mutex);
        if (error != EINVAL && error != EROFS) /* the file system does not support it; no data is lost */
            sync->error = error;
    }
    pthread_mutex_unlock(&sync->mutex);
    return NULL;
}

cake_fsync_thread *cake_fsync_thread_open(int fd)
{
    cake_fsync_thread *sync = cake_alloc(1, sizeof *sync);
    sync->fd = fd;
    pthread_mutex_init(&sync->mutex, NULL);
    pthread_condattr_t steady; /* immune to changes of the wall clock */
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&sync->wake, &steady);
    pthread_condattr_destroy(&steady);
    if (cake_thread_start(&sync->thread, 0, work, sync))
        return sync;
    free(sync);
    return NULL;
}

void cake_fsync_thread_dirty(cake_fsync_thread *sync)
{
    if (!sync)
        return;
    pthread_mutex_lock(&sync->mutex);
    sync->dirty = true;
    pthread_mutex_unlock(&sync->mutex);
}

int cake_fsync_thread_error(cake_fsync_thread *sync)
{
    if (!sync)
        return 0;
    pthread_mutex_lock(&sync->mutex);
    int error = sync->error;
    pthread_mutex_unlock(&sync->mutex);
    return error;
}

double cake_fsync_thread_cpu(const cake_fsync_thread *sync)
{
    clockid_t clock;
    struct timespec took;
    if (!sync || pthread_getcpuclockid(sync->thread, &clock) || clock_gettime(clock, &took))
        return 0;
    return (double)took.tv_sec + 1e-9 * (double)took.tv_nsec;
}

void cake_fsync_thread_close(cake_fsync_thread *sync)
{
    if (!sync)
        return;
    pthread_mutex_lock(&sync->mutex);
    sync->stop = true;
    pthread_cond_signal(&sync->wake);
    pthread_mutex_unlock(&sync->mutex);
    pthread_join(sync->thread, NULL);
    pthread_cond_destroy(&sync->wake);
    pthread_mutex_destroy(&sync->mutex);
    free(sync);
}
