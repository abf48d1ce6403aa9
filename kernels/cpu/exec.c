/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs work on a team of threads; the only file that opens a parallel region. The thread pool is OpenMP's.
 * The barrier is our own, because OpenMP's spins for milliseconds if more threads than cores wait. For the
 * same reason a session keeps the pool inside one region if there are more threads than cpus.
 * Invariant: a unit of a queue is taken once.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "kernels/kernels.h"

#define SPINS       2000 /* some microseconds: longer than a barrier after equal shares takes */
#define MAX_MEMBERS 256  /* larger teams do not steal work */

/* A member's share of a queue in one atomic word: [queue, begin, end) of the units not yet taken. */
typedef struct member {
    _Alignas(64) _Atomic uint64_t left;
    unsigned n_queue; /* queues so far; private to the member */
} member;

#define UNIT_BITS 26
#define UNITS     (((uint64_t)1 << UNIT_BITS) - 1)
#define QUEUES    (((unsigned)1 << (64 - 2 * UNIT_BITS)) - 1)

/* A team's barrier: the last member to arrive opens the next round. Counter and round are on different cache
 * lines, because waiting members read one while arriving members write the other. */
struct cake_team {
    _Alignas(64) atomic_int arrived;
    _Alignas(64) atomic_uint round;
    member members[MAX_MEMBERS];
};

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb"); /* yield does nothing on most of these processors */
#endif
}

static pthread_key_t scratch_key;
static pthread_once_t scratch_once = PTHREAD_ONCE_INIT;

static void make_key(void)
{
    CAKE_ASSERT(!pthread_key_create(&scratch_key, free)); /* freed when the thread ends */
}

void *cake_exec_scratch(void)
{
    static _Thread_local void *mine;
    if (mine)
        return mine;
    pthread_once(&scratch_once, make_key);
    mine = aligned_alloc(64, CAKE_SCRATCH_BYTES);
    if (!mine)
        cake_die("no memory for a thread's scratch");
    pthread_setspecific(scratch_key, mine);
    return mine;
}

static int spins = SPINS;

void cake_exec_oversubscribe(bool oversubscribed)
{
    spins = oversubscribed ? 0 : SPINS;
}

bool cake_exec_is_oversubscribed(void)
{
    return !spins;
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
        if (i < spins)
            pause_briefly();
        else
            sched_yield();
}

/* Size of the resident pool: OpenMP would end threads that a smaller team does not need, and start new ones
 * later. */
static int kept;

void cake_exec_resident(int size)
{
    kept = size;
}

#ifdef _OPENMP

typedef struct job {
    void (*work)(const cake_exec *exec, void *arg);
    void *arg;
    struct cake_team *team;
    int size;
} job;

/* The open session. Every member passes through every round, so none misses a job. */
static struct {
    int size; /* members, with the one that runs the teams; 0: no session is open */
    pthread_t owner;
    job job;
    bool over;
    atomic_uint round; /* changes with a new job, under the lock */
    atomic_int left;   /* members that have not passed this round */
    pthread_mutex_t lock;
    pthread_cond_t posted;
} session = {.lock = PTHREAD_MUTEX_INITIALIZER, .posted = PTHREAD_COND_INITIALIZER};

static bool in_session(void)
{
    return session.size && pthread_equal(session.owner, pthread_self());
}

static void post(const job *next)
{
    session.job = *next;
    atomic_store(&session.left, session.size - 1);
    pthread_mutex_lock(&session.lock);
    atomic_fetch_add(&session.round, 1);
    pthread_mutex_unlock(&session.lock);
    pthread_cond_broadcast(&session.posted);
}

static void run_in_session(const job *next)
{
    cake_exec exec = {0, next->size, next->team};
    post(next);
    next->work(&exec, next->arg);
    while (atomic_load(&session.left))
        sched_yield();
}

static void wait_for_round(unsigned seen)
{
    enum { YIELDS = 50 }; /* the next job usually comes soon */
    for (int i = 0; i < YIELDS && atomic_load(&session.round) == seen; i++)
        sched_yield();
    if (atomic_load(&session.round) != seen)
        return;
    pthread_mutex_lock(&session.lock);
    while (atomic_load(&session.round) == seen)
        pthread_cond_wait(&session.posted, &session.lock);
    pthread_mutex_unlock(&session.lock);
}

/* The loop of a member until the session ends. */
static void serve(int rank, unsigned seen)
{
    for (;; seen++) {
        wait_for_round(seen);
        if (session.over)
            return;
        cake_exec exec = {rank, session.job.size, session.job.team};
        if (rank < exec.size)
            session.job.work(&exec, session.job.arg);
        atomic_fetch_sub(&session.left, 1);
    }
}

void cake_exec_session(int size, void (*work)(void *arg), void *arg)
{
    if (!cake_exec_is_oversubscribed() || size == 1) {
        work(arg);
        return;
    }
    unsigned first = atomic_load(&session.round);
    session.over = false;
#pragma omp parallel num_threads(size)
    {
        int rank = omp_get_thread_num();
        if (rank > 0) {
            serve(rank, first);
        } else {
            session.owner = pthread_self();
            session.size = omp_get_num_threads();
            work(arg);
            session.over = true;
            post(&(job){0});
            session.size = 0;
        }
    }
}

#else

void cake_exec_session(int size, void (*work)(void *arg), void *arg)
{
    (void)size;
    work(arg);
}

#endif

void cake_exec_run(int size, void (*work)(const cake_exec *exec, void *arg), void *arg)
{
#ifdef _OPENMP
    if (size > 1) {
        struct cake_team team;
        atomic_init(&team.arrived, 0);
        atomic_init(&team.round, 0);
        for (int i = 0; i < MAX_MEMBERS && i < size; i++) {
            atomic_init(&team.members[i].left, 0);
            team.members[i].n_queue = 0;
        }
        if (in_session()) {
            run_in_session(&(job){work, arg, &team, size < session.size ? size : session.size});
            return;
        }
#pragma omp parallel num_threads(size > kept ? size : kept)
        {
            int here = omp_get_num_threads();
            cake_exec exec = {omp_get_thread_num(), here < size ? here : size, &team};
            if (exec.rank < exec.size)
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

/* The range [begin, end) of a member, of n units. */
static void share(int64_t n, int rank, int size, int64_t *first, int64_t *last)
{
    *first = n * rank / size;
    *last = n * (rank + 1) / size;
}

void cake_exec_yield(void)
{
    sched_yield();
}

void cake_exec_range(const cake_exec *exec, int64_t n, int64_t grain, int64_t *first, int64_t *last)
{
    share((n + grain - 1) / grain, exec->rank, exec->size, first, last);
    *first = *first * grain < n ? *first * grain : n;
    *last = *last * grain < n ? *last * grain : n;
}

static uint64_t word_of(unsigned queue, int64_t begin, int64_t end)
{
    return (uint64_t)queue << 2 * UNIT_BITS | (uint64_t)begin << UNIT_BITS | (uint64_t)end;
}

static unsigned queue_of(uint64_t word)
{
    return (unsigned)(word >> 2 * UNIT_BITS);
}

static bool change(member *of, uint64_t *from, uint64_t to)
{
    return atomic_compare_exchange_strong_explicit(&of->left, from, to, memory_order_relaxed,
                                                   memory_order_relaxed);
}

static bool alone(const cake_exec *exec)
{
    return exec->size == 1 || exec->size > MAX_MEMBERS;
}

/* An earlier member may have opened this one's share, taken all of it, and continued with later queues. */
cake_work_queue cake_exec_queue(const cake_exec *exec, int64_t n)
{
    CAKE_ASSERT(n >= 0 && n <= (int64_t)UNITS);
    cake_work_queue queue = {.exec = exec, .n = n};
    share(n, exec->rank, exec->size, &queue.first, &queue.last);
    if (alone(exec))
        return queue;
    member *mine = &exec->team->members[exec->rank];
    queue.number = ++mine->n_queue & QUEUES;
    uint64_t word = atomic_load_explicit(&mine->left, memory_order_relaxed);
    if (queue_of(word) == ((queue.number - 1) & QUEUES))
        change(mine, &word, word_of(queue.number, queue.first, queue.last));
    return queue;
}

/* Units to take at once: few enough to leave some for a member that arrives now. */
static int64_t chunk_size(int64_t left, int64_t most)
{
    int64_t half = (left + 1) / 2;
    return half < most ? half : most;
}

/* Takes units from the beginning of the member's own share, or from the end of another's. A member that has
 * finished the previous queue but not begun this one still has its whole share; the share of a member that is
 * further back is not touched. */
static bool take_of(const cake_work_queue *queue, int rank, int64_t most, int64_t *first, int64_t *last)
{
    member *from = &queue->exec->team->members[rank];
    uint64_t word = atomic_load_explicit(&from->left, memory_order_relaxed), rest;
    do {
        int64_t begin = (int64_t)(word >> UNIT_BITS & UNITS), end = (int64_t)(word & UNITS);
        if (begin == end && queue_of(word) == ((queue->number - 1) & QUEUES))
            share(queue->n, rank, queue->exec->size, &begin, &end);
        else if (queue_of(word) != queue->number)
            return false;
        if (begin == end)
            return false;
        int64_t n = chunk_size(end - begin, most);
        bool own = rank == queue->exec->rank;
        *first = own ? begin : end - n;
        *last = *first + n;
        rest = own ? word_of(queue->number, *last, end) : word_of(queue->number, begin, *first);
    } while (!change(from, &word, rest));
    return true;
}

bool cake_exec_next(cake_work_queue *queue, int64_t most, int64_t *first, int64_t *last)
{
    const cake_exec *exec = queue->exec;
    if (alone(exec)) {
        *first = queue->first;
        *last = queue->first = queue->last - queue->first < most ? queue->last : queue->first + most;
        return *first < *last;
    }
    for (int i = 0; i < exec->size; i++)
        if (take_of(queue, (exec->rank + i) % exec->size, most, first, last))
            return true;
    return false;
}
