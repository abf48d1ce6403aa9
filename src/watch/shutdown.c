/* SPDX-License-Identifier: Apache-2.0
 *
 * In: signals, options, the environment. Out: whether to stop. The loop of a run polls, then stops
 * gracefully. Before the loop rank 0 may block for minutes, in a read of weights or on a pipe; after it
 * results are written. In these phases a thread, the guard, ends the process: nothing is lost, since the
 * journal is consistent at any moment.
 * Invariant: a signal handler only counts and wakes the guard.
 */
#include "watch/shutdown.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/slurm.h"
#include "link/heartbeat.h"
#include "record/lock.h"

enum {
    MARGIN = 60, /* seconds before the job's end at which the run stops, without --stop-before */
    GRACE = 3    /* seconds that the loop has to stop gracefully after a second signal */
};

static const struct {
    int number;
    const char *name;
    bool repeats; /* the system itself may send it twice, so a second one does not mean: end at once */
} handled[] = {{SIGTERM, "SIGTERM", false},
               {SIGUSR1, "SIGUSR1", false},
               {SIGUSR2, "SIGUSR2", false},
               {SIGHUP, "SIGHUP", true},
               {SIGXCPU, "SIGXCPU", true}};

enum { N_SIGNAL = sizeof handled / sizeof *handled };

typedef enum phase {
    EARLY, /* before MPI_Init: a launcher that loses a rank now may wait for ever */
    START, /* nothing was computed yet */
    LOOP,  /* the loop polls cake_shutdown_requested */
    WRITE  /* only RESULTS remain to be written */
} phase;

static struct {
    struct sigaction before[N_SIGNAL];
    atomic_int n_signal, latest; /* how many came (2: more than one); the latest one */
    atomic_int phase;
    double deadline;    /* of the run, on cake_clock_now; INFINITY: none */
    const char *reason; /* of the deadline, for the message */
    bool requested;     /* cake_shutdown_requested was true */

    sem_t wake;           /* wakes the guard */
    pthread_mutex_t lock; /* held while the guard ends the process and while the phase changes */
    pthread_t guard;
    bool guarded, closing;
    void (*on_exit)(void); /* called before the guard ends the process */
} state = {.deadline = INFINITY, .lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_repeated(int number)
{
    for (int i = 0; i < N_SIGNAL; i++)
        if (handled[i].number == number)
            return handled[i].repeats && state.n_signal;
    return false;
}

static void count_signal(int number)
{
    int kept = errno;
    if (is_repeated(number))
        return;
    state.latest = number;
    if (state.n_signal < 2)
        state.n_signal = state.n_signal + 1;
    if (state.n_signal > 1 && state.phase == EARLY) {
        signal(number, SIG_DFL);
        raise(number);
    }
    sem_post(&state.wake);
    errno = kept;
}

static void limit_time(double seconds, const char *reason)
{
    double deadline = cake_clock_now() + seconds;
    if (deadline >= state.deadline)
        return;
    state.deadline = deadline;
    state.reason = reason;
}

/* A limit that leaves no time is an error: it would stop this run and every one that resumes it. */
static cake_err find_deadline(const cake_time_limits *o)
{
    int64_t end = cake_slurm_end(), margin = o->stop_before < 0 ? MARGIN : o->stop_before;
    if (!o->max_runtime)
        return cake_fail_usage("--max-runtime 0 leaves no time to run");
    if (o->max_runtime > 0)
        limit_time((double)o->max_runtime, "--max-runtime is over");
    if (end) {
        double left = (double)(end - (int64_t)time(NULL));
        if (left <= 0)
            return cake_fail("watch",
                             "the job ended %.0f s ago, according to SLURM_JOB_END_TIME or squeue: "
                             "unset the variable if it belongs to another job",
                             -left);
        if (left <= (double)margin)
            return cake_fail("watch",
                             "the job ends in %.0f s and the run has to stop %lld s before: "
                             "no time is left to run; give the job more time, or a shorter --stop-before",
                             left, (long long)margin);
        limit_time(left - (double)margin, "the job's end is near");
        cake_log(CAKE_DEBUG, "watch", "the job ends in %.0f s; the run stops %lld s before", left,
                 (long long)margin);
    } else if (o->stop_before >= 0) {
        cake_log(
            CAKE_WARN, "watch",
            "--stop-before: the end of the job is unknown (no SLURM_JOB_END_TIME, no answer from squeue); "
            "give `--max-runtime` instead");
    }
    return CAKE_OK;
}

void cake_shutdown_install(void)
{
    struct sigaction ours = {.sa_handler = count_signal, .sa_flags = SA_RESTART};
    sigemptyset(&ours.sa_mask);
    sem_init(&state.wake, 0, 0);
    for (int i = 0; i < N_SIGNAL; i++) {
        sigaction(handled[i].number, NULL, &state.before[i]);
        if (!handled[i].repeats || state.before[i].sa_handler != SIG_IGN) /* nohup ignores SIGHUP */
            sigaction(handled[i].number, &ours, NULL);
    }
}

static void restore(void)
{
    for (int i = 0; i < N_SIGNAL; i++)
        sigaction(handled[i].number, &state.before[i], NULL);
}

void cake_shutdown_restore(void)
{
    restore();
    if (state.n_signal)
        raise(state.latest);
}

static const char *stop_reason(void)
{
    for (int i = 0; state.n_signal && i < N_SIGNAL; i++)
        if (handled[i].number == state.latest)
            return handled[i].name;
    return state.reason;
}

/* ---- the guard */

/* Ends this process, and with it all ranks. */
static void end_now(const char *what)
{
    char text[128];
    snprintf(text, sizeof text, "%s: %s; the same command continues the run (status %d)", stop_reason(), what,
             CAKE_STOPPED);
    cake_log_now(CAKE_INFO, "watch", text);
    if (state.on_exit && state.phase == START)
        state.on_exit();
    cake_lock_abandon();
    cake_heartbeat_send_failed(CAKE_STOPPED);
    cake_comm_exit_now(CAKE_STOPPED);
}

/* Returns at a signal, at a change of phase, or at the deadline if the loop has not begun. */
static void wait_for_wake(void)
{
    double left = state.deadline - cake_clock_now();
    struct timespec at;
    if (state.phase != START || !isfinite(left)) {
        while (sem_wait(&state.wake) && errno == EINTR)
            ;
        return;
    }
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec += (time_t)(left > 0 ? left : 0) + 1;
    while (sem_timedwait(&state.wake, &at) && errno == EINTR)
        ;
}

static void *guard(void *unused)
{
    (void)unused;
    for (int waited = 0; waited < 100 * GRACE;) {
        if (!waited)
            wait_for_wake();
        pthread_mutex_lock(&state.lock);
        bool closing = state.closing;
        if (!closing && state.phase == START && (state.n_signal || cake_clock_now() >= state.deadline))
            end_now("stopped before anything was computed");
        if (!closing && state.phase == WRITE && state.n_signal > 1)
            end_now("ended while results were being written");
        pthread_mutex_unlock(&state.lock);
        if (closing)
            return unused;
        if (state.n_signal > 1) { /* the loop will see it, unless it is blocked */
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
            waited++;
        }
    }
    end_now("ended at once");
    return unused;
}

static void enter_phase(phase next)
{
    pthread_mutex_lock(&state.lock);
    state.phase = next;
    pthread_mutex_unlock(&state.lock);
    sem_post(&state.wake); /* an earlier signal may have another effect in this phase */
}

cake_err cake_shutdown_open(const cake_time_limits *limits, const cake_comm *world)
{
    cake_err err = cake_comm_agree(world, world->rank ? CAKE_OK : find_deadline(limits));
    if (err || world->rank)
        return err;
    state.phase = START;
    state.guarded = !pthread_create(&state.guard, NULL, guard, NULL);
    sem_post(&state.wake); /* signals may have come before the thread */
    return CAKE_OK;
}

void cake_shutdown_on_exit(void (*on_exit)(void))
{
    pthread_mutex_lock(&state.lock);
    state.on_exit = on_exit;
    pthread_mutex_unlock(&state.lock);
}

void cake_shutdown_loop(void)
{
    enter_phase(LOOP);
}

void cake_shutdown_write(void)
{
    enter_phase(WRITE);
}

/* After a signal the process is about to end, and another signal must not interrupt that. */
void cake_shutdown_close(void)
{
    if (state.guarded) {
        pthread_mutex_lock(&state.lock);
        state.closing = true;
        pthread_mutex_unlock(&state.lock);
        sem_post(&state.wake);
        pthread_join(state.guard, NULL);
        state.guarded = false;
    }
    if (!state.n_signal)
        restore();
}

double cake_shutdown_seconds_left(void)
{
    return state.deadline - cake_clock_now();
}

bool cake_shutdown_requested(void)
{
    if (!state.requested && (state.n_signal || cake_clock_now() >= state.deadline)) {
        state.requested = true;
        cake_log(CAKE_INFO, "watch", "%s: stops when the waves in flight are finished", stop_reason());
    }
    return state.requested;
}

bool cake_shutdown_forced(void)
{
    return state.n_signal > 1;
}
