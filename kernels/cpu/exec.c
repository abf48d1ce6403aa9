/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a piece of work. Out: it, done by a team of threads; the one place that opens a parallel region. The pool
 * is OpenMP's; the barrier is our own, since OpenMP's spins for milliseconds where more threads than cores wait.
 */
#include <sched.h>
#include <stdatomic.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "kernels/kernels.h"

#define SPINS 2000 /* some microseconds: longer than a barrier between equal shares takes */

/* Members count in; the last one opens the next round. Counter and round are apart, since waiters read one
 * while arrivals write the other. */
struct cake_team {
    _Alignas(64) atomic_int arrived;
    _Alignas(64) atomic_uint round;
};

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

void cake_exec_barrier(const cake_exec *exec)
{
    struct cake_team *team = exec->team;
    if (exec->size == 1)
        return;
    unsigned round = atomic_load_explicit(&team->round, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&team->arrived, 1, memory_order_acq_rel) == exec->size - 1) {
        atomic_store_explicit(&team->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&team->round, round + 1, memory_order_release);
        return;
    }
    for (int i = 0; atomic_load_explicit(&team->round, memory_order_acquire) == round; i++)
        if (i < SPINS)
            pause_briefly();
        else
            sched_yield();
}

void cake_exec_run(int size, void (*work)(const cake_exec *exec, void *arg), void *arg)
{
#ifdef _OPENMP
    if (size > 1) {
        struct cake_team team;
        atomic_init(&team.arrived, 0);
        atomic_init(&team.round, 0);
#pragma omp parallel num_threads(size)
        {
            cake_exec exec = {omp_get_thread_num(), omp_get_num_threads(), &team};
            work(&exec, arg);
        }
        return;
    }
#else
    (void)size;
#endif
    cake_exec alone = {0, 1, NULL};
    work(&alone, arg);
}

void cake_exec_share(const cake_exec *exec, int64_t n, int64_t grain, int64_t *first, int64_t *last)
{
    int64_t units = (n + grain - 1) / grain;
    int64_t from = units * exec->rank / exec->size * grain;
    int64_t to = units * (exec->rank + 1) / exec->size * grain;
    *first = from < n ? from : n;
    *last = to < n ? to : n;
}
