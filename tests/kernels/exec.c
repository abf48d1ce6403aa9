/* SPDX-License-Identifier: Apache-2.0
 *
 * Teams: barriers, shares, queues of units that members steal from each other.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/kernels.h"
#include "tests/suite.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static const int team_sizes[] = {1, 2, 3, 7};

typedef struct meeting {
    atomic_int here;
    atomic_int wrong;
} meeting;

static void meet(const cake_exec *exec, void *arg)
{
    meeting *m = arg;
    for (int round = 1; round <= 200; round++) {
        atomic_fetch_add(&m->here, 1);
        cake_exec_barrier(exec);
        if (atomic_load(&m->here) != round * exec->size)
            atomic_fetch_add(&m->wrong, 1);
        cake_exec_barrier(exec);
    }
}

static void test_barrier(void)
{
    for (int team = 0; team < COUNT(team_sizes); team++) {
        meeting m;
        atomic_init(&m.here, 0);
        atomic_init(&m.wrong, 0);
        cake_exec_run(team_sizes[team], meet, &m);
        CU_ASSERT_EQUAL(atomic_load(&m.wrong), 0);
        CU_ASSERT_EQUAL(atomic_load(&m.here) % 200, 0);
    }
}

/* A team smaller than what is kept is of its own size, and the other threads are the same ones afterwards. */
typedef struct faces {
    pthread_t thread[8];
    atomic_int n;
} faces;

static void show(const cake_exec *exec, void *arg)
{
    faces *f = arg;
    f->thread[exec->rank] = pthread_self();
    atomic_fetch_add(&f->n, 1);
    cake_exec_barrier(exec);
}

static void test_keep(void)
{
    faces before = {0}, few = {0}, after = {0};
    cake_exec_resident(7);
    cake_exec_run(7, show, &before);
    for (int size = 1; size <= 3; size++) {
        atomic_store(&few.n, 0);
        cake_exec_run(size, show, &few);
        CU_ASSERT_EQUAL(atomic_load(&few.n), size);
    }
    cake_exec_run(7, show, &after);
    for (int i = 0; i < 7; i++)
        CU_ASSERT(pthread_equal(before.thread[i], after.thread[i]));
    test_barrier();
    cake_exec_resident(0);
}

typedef struct one_cpu {
    meeting meeting;
    cpu_set_t one;
} one_cpu;

static void meet_on_one(const cake_exec *exec, void *arg)
{
    one_cpu *c = arg;
    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    sched_setaffinity(0, sizeof c->one, &c->one);
    meet(exec, &c->meeting);
    sched_setaffinity(0, sizeof before, &before);
}

/* Seconds of the processor that a team of 16 takes to meet on one cpu. */
static double seconds_on_one_cpu(bool oversubscribed)
{
    one_cpu c = {.meeting = {0}};
    struct timespec begin, end;
    cpu_set_t all;
    int first = 0;
    sched_getaffinity(0, sizeof all, &all);
    while (first < CPU_SETSIZE - 1 && !CPU_ISSET(first, &all))
        first++;
    CPU_SET(first, &c.one);
    cake_exec_oversubscribe(oversubscribed);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    cake_exec_run(16, meet_on_one, &c);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    cake_exec_oversubscribe(false);
    CU_ASSERT_EQUAL(atomic_load(&c.meeting.wrong), 0);
    return (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}

static void test_oversubscribed(void)
{
    double spun = seconds_on_one_cpu(false), gave_way = seconds_on_one_cpu(true);
    CU_ASSERT(3 * gave_way < spun);
    if (3 * gave_way >= spun)
        printf("  %g s and %g s\n", spun, gave_way);
}

/* Teams of all sizes, as a run has them, on threads that wait in a session; and one after it. */
static void run_teams(void *arg)
{
    meeting *m = arg;
    for (int round = 0; round < (suite_all() ? 50 : 10); round++)
        for (int size = 1; size <= 8; size++) {
            faces found = {0};
            cake_exec_run(size, show, &found);
            CU_ASSERT_EQUAL(atomic_load(&found.n), size);
        }
    atomic_store(&m->here, 0);
    cake_exec_run(9, meet, m); /* where the session has fewer, they are enough */
}

static void test_session(void)
{
    for (int oversubscribed = 0; oversubscribed < 2; oversubscribed++) {
        meeting m = {0};
        cake_exec_oversubscribe(oversubscribed);
        CU_ASSERT_EQUAL(cake_exec_is_oversubscribed(), oversubscribed);
        cake_exec_session(8, run_teams, &m);
        cake_exec_session(1, run_teams, &m);
        CU_ASSERT_EQUAL(atomic_load(&m.wrong), 0);
        test_barrier();
    }
    cake_exec_oversubscribe(false);
}

static void test_share(void)
{
    static const int64_t sizes[] = {0, 1, 2, 31, 32, 33, 1000, (int64_t)1 << 40};
    for (int s = 0; s < COUNT(sizes); s++)
        for (int size = 1; size <= 9; size++)
            for (int64_t grain = 1; grain <= 32; grain += 31) {
                int64_t at = 0;
                for (int rank = 0; rank < size; rank++) {
                    int64_t first, last;
                    cake_exec exec = {rank, size, NULL};
                    cake_exec_range(&exec, sizes[s], grain, &first, &last);
                    CU_ASSERT(first == at && last >= first);
                    CU_ASSERT(first % grain == 0 || first == sizes[s]);
                    at = last;
                }
                CU_ASSERT_EQUAL(at, sizes[s]);
            }
}

#define N_DEAL  4200 /* more than a resources can number */
#define N_MOST  9
#define N_UNITS 97

/* Members take units of queue after queue, some of them with pauses, so that others come to deals first. */
typedef struct queue_case {
    atomic_int taken[N_UNITS];
    atomic_int wrong;
    int n_late; /* members that pause */
} queue_case;

static void take_all(const cake_exec *exec, void *arg)
{
    queue_case *d = arg;
    for (int n = 0; n < N_DEAL; n++) {
        int64_t units = (n * 31) % (N_UNITS + 1), first, last;
        if (n % 100 == 0)
            cake_exec_barrier(exec);
        if (exec->rank < d->n_late)
            sched_yield();
        cake_work_queue queue = cake_exec_queue(exec, units);
        while (cake_exec_next(&queue, 1 + n % N_MOST, &first, &last)) {
            if (first < 0 || last > units || last - first < 1 || last - first > 1 + n % N_MOST)
                atomic_fetch_add(&d->wrong, 1);
            for (int64_t i = first; i < last && i < N_UNITS; i++)
                atomic_fetch_add(&d->taken[i], 1);
        }
    }
}

static void test_deal(void)
{
    for (int team = 0; team < COUNT(team_sizes); team++)
        for (int n_late = 0; n_late < 3; n_late += 2) {
            queue_case d = {.n_late = n_late};
            int want[N_UNITS] = {0}, bad = 0;
            cake_exec_run(team_sizes[team], take_all, &d);
            for (int n = 0; n < N_DEAL; n++)
                for (int i = 0; i < (n * 31) % (N_UNITS + 1); i++)
                    want[i]++;
            for (int i = 0; i < N_UNITS; i++)
                bad += atomic_load(&d.taken[i]) != want[i];
            CU_ASSERT_EQUAL(bad, 0);
            CU_ASSERT_EQUAL(atomic_load(&d.wrong), 0);
        }
}

static int take_n(cake_work_queue *queue, int n, int64_t *units)
{
    int taken = 0;
    for (int64_t last; taken < n && cake_exec_next(queue, 1, &units[taken], &last); taken++)
        CU_ASSERT_EQUAL(last, units[taken] + 1);
    return taken;
}

/* The second member comes when the first one has taken all but one unit of a queue and what it may of the
 * next. */
typedef struct late {
    int64_t first[N_UNITS], next[N_UNITS], rest[N_UNITS], after[N_UNITS];
    int n_first, n_next, n_rest, n_after;
} late;

static void take_for_two(const cake_exec *exec, void *arg)
{
    late *l = arg;
    cake_work_queue queue;
    if (exec->rank == 0) {
        queue = cake_exec_queue(exec, N_UNITS);
        l->n_first = take_n(&queue, N_UNITS - 1, l->first);
        queue = cake_exec_queue(exec, N_UNITS);
        l->n_next = take_n(&queue, N_UNITS, l->next);
    }
    cake_exec_barrier(exec);
    if (exec->rank == 1) {
        queue = cake_exec_queue(exec, N_UNITS);
        l->n_rest = take_n(&queue, N_UNITS, l->rest);
        queue = cake_exec_queue(exec, N_UNITS);
        l->n_after = take_n(&queue, N_UNITS, l->after);
    }
    cake_exec_barrier(exec);
}

static void test_late(void)
{
    late l;
    cake_exec_run(2, take_for_two, &l);
    int own = N_UNITS / 2;
    CU_ASSERT_EQUAL(l.n_first, N_UNITS - 1);
    for (int i = 0; i < l.n_first; i++) /* its own upwards, the other's from their end */
        CU_ASSERT_EQUAL(l.first[i], i < own ? i : N_UNITS - 1 - (i - own));
    CU_ASSERT_EQUAL(l.n_next, own); /* the other one may still be at the first queue */
    for (int i = 0; i < l.n_next; i++)
        CU_ASSERT_EQUAL(l.next[i], i);
    CU_ASSERT_EQUAL(l.n_rest, 1);
    CU_ASSERT_EQUAL(l.rest[0], own);
    CU_ASSERT_EQUAL(l.n_after, N_UNITS - own);
    for (int i = 0; i < l.n_after; i++)
        CU_ASSERT_EQUAL(l.after[i], own + i);
}

int main(void)
{
    static const suite_test tests[] = {
        {"barrier: all meet", test_barrier},
        {"a team that is smaller for a while", test_keep},
        {"more threads than cpus", test_oversubscribed},
        {"teams of a session", test_session},
        {"share: everything once", test_share},
        {"queue: everything once, queue after queue", test_deal},
        {"queue: others' shares from their end, those of members far behind not at all", test_late},
    };
    return SUITE_MAIN("exec", tests);
}
