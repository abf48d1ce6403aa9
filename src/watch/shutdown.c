/* SPDX-License-Identifier: Apache-2.0
 *
 * In: signals, options, the environment. Out: whether to stop. cmd_run.c calls. The loop of a run asks often,
 * and then stops in order. Before the loop rank 0 may wait for minutes, in a read of weights or for the
 * other end of a pipe; behind it results are written. There a thread, the guard, ends the process:
 * nothing is lost, since the journal is right at any moment.
 * Invariant: a handler does nothing but count and wake the guard.
 */
#include "watch/shutdown.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/slurm.h"
#include "link/heartbeat.h"
#include "record/lock.h"

/* Seconds before the job's end at which the run stops, unless --stop-before says otherwise; that the loop
 * gets to stop in order after a second signal. */
enum { MARGIN = 60, GRACE = 3 };

static const struct {
    int number;
    const char *name;
    bool repeats; /* the system sends it again by itself, which is no wish to end at once */
} taken[] = {{SIGTERM, "SIGTERM", false},
             {SIGUSR1, "SIGUSR1", false},
             {SIGUSR2, "SIGUSR2", false},
             {SIGHUP, "SIGHUP", true},
             {SIGXCPU, "SIGXCPU", true}};

enum { N_TAKEN = sizeof taken / sizeof *taken };

/* What a signal finds. */
typedef enum phase {
    EARLY, /* MPI is not up: a launcher that loses a rank now may wait for ever */
    START, /* nothing was computed */
    LOOP,  /* cake_shutdown_requested is asked often */
    WRITE  /* all is done but for RESULTS */
} phase;

static struct {
    struct sigaction before[N_TAKEN];
    volatile sig_atomic_t came, latest; /* signals that came; the latest one */
    volatile sig_atomic_t phase;
    double until;       /* when the run has to stop, as cake_clock_now counts; INFINITY: no end is known */
    const char *reason; /* what ends then, for the message */
    bool due;

    sem_t wake;           /* of the guard */
    pthread_mutex_t lock; /* held where the guard ends the process, and where the phase changes */
    pthread_t guard;
    bool guarded, closing;
    void (*ended)(void); /* called before the guard ends the process */
} state = {.until = INFINITY, .lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_repeated(int number)
{
    for (int i = 0; i < N_TAKEN; i++)
        if (taken[i].number == number)
            return taken[i].repeats && state.came;
    return false;
}

static void note(int number)
{
    int kept = errno;
    if (is_repeated(number))
        return;
    state.latest = number;
    if (state.came < 2)
        state.came = state.came + 1;
    if (state.came > 1 && state.phase == EARLY) {
        signal(number, SIG_DFL);
        raise(number);
    }
    sem_post(&state.wake);
    errno = kept;
}

static void limit(double seconds, const char *reason)
{
    double until = cake_clock_now() + seconds;
    if (until >= state.until)
        return;
    state.until = until;
    state.reason = reason;
}

/* Finds when the run has to stop. A limit that leaves no time is an error: it would stop this run and each
 * one that goes on from it. */
static cake_err find_end(const cake_options *o)
{
    int64_t end = cake_slurm_end(), margin = o->stop_before < 0 ? MARGIN : o->stop_before;
    if (!o->max_runtime)
        return cake_fail_usage("--max-runtime 0 leaves no time for anything");
    if (o->max_runtime > 0)
        limit((double)o->max_runtime, "--max-runtime is over");
    if (end) {
        double left = (double)(end - (int64_t)time(NULL));
        if (left <= 0)
            return cake_fail("run",
                             "the job's end, as SLURM_JOB_END_TIME or squeue has it, was %.0f s ago: "
                             "unset the variable if it is another job's",
                             -left);
        if (left <= (double)margin)
            return cake_fail("run",
                             "the job ends in %.0f s and the run is to stop %lld s before: "
                             "no time is left for anything; "
                             "give the job more time, or a shorter --stop-before",
                             left, (long long)margin);
        limit(left - (double)margin, "the job's end is near");
        cake_log(CAKE_DEBUG, "run", "the job ends in %.0f s; the run stops %lld s before", left,
                 (long long)margin);
    } else if (o->stop_before >= 0) {
        cake_log(
            CAKE_WARN, "run",
            "--stop-before: the end of the job is not known (no SLURM_JOB_END_TIME, no answer from squeue); "
            "--max-runtime sets a limit without it");
    }
    return CAKE_OK;
}

void cake_shutdown_install(void)
{
    struct sigaction ours = {.sa_handler = note, .sa_flags = SA_RESTART};
    sigemptyset(&ours.sa_mask);
    sem_init(&state.wake, 0, 0);
    for (int i = 0; i < N_TAKEN; i++) {
        sigaction(taken[i].number, NULL, &state.before[i]);
        if (!taken[i].repeats || state.before[i].sa_handler != SIG_IGN) /* nohup has SIGHUP ignored */
            sigaction(taken[i].number, &ours, NULL);
    }
}

static void restore(void)
{
    for (int i = 0; i < N_TAKEN; i++)
        sigaction(taken[i].number, &state.before[i], NULL);
}

void cake_shutdown_restore(void)
{
    restore();
    if (state.came)
        raise(state.latest);
}

static const char *why(void)
{
    for (int i = 0; state.came && i < N_TAKEN; i++)
        if (taken[i].number == state.latest)
            return taken[i].name;
    return state.reason;
}

/* ---- the guard */

/* This process ends, and the others with it. */
static void end_now(const char *what)
{
    char text[128];
    snprintf(text, sizeof text, "%s: %s; the same command again goes on from there (status %d)", why(), what,
             CAKE_STOPPED);
    cake_log_now(CAKE_INFO, "run", text);
    if (state.ended && state.phase == START)
        state.ended();
    cake_lock_abandon();
    cake_heartbeat_send_failed(CAKE_STOPPED);
    cake_comm_exit_now(CAKE_STOPPED);
}

/* Until a signal comes, or time is up before the loop has begun. */
static void wait_for_wake(void)
{
    double left = state.until - cake_clock_now();
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
        if (!closing && state.phase == START && (state.came || cake_clock_now() >= state.until))
            end_now("stops before anything was computed");
        if (!closing && state.phase == WRITE && state.came > 1)
            end_now("ends while results are written");
        pthread_mutex_unlock(&state.lock);
        if (closing)
            return unused;
        if (state.came > 1) { /* the loop will see it, if it is not held up */
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
            waited++;
        }
    }
    end_now("ends at once");
    return unused;
}

static void enter(phase next)
{
    pthread_mutex_lock(&state.lock);
    state.phase = next;
    pthread_mutex_unlock(&state.lock);
    sem_post(&state.wake); /* what came before may mean something else now */
}

cake_err cake_shutdown_open(const cake_options *options, const cake_comm *world)
{
    cake_err err = cake_comm_agree(world, world->rank ? CAKE_OK : find_end(options));
    if (err || world->rank)
        return err;
    state.phase = START;
    state.guarded = !pthread_create(&state.guard, NULL, guard, NULL);
    sem_post(&state.wake); /* signals may have come already */
    return CAKE_OK;
}

void cake_shutdown_on_exit(void (*ended)(void))
{
    pthread_mutex_lock(&state.lock);
    state.ended = ended;
    pthread_mutex_unlock(&state.lock);
}

void cake_shutdown_loop(void)
{
    enter(LOOP);
}

void cake_shutdown_write(void)
{
    enter(WRITE);
}

/* If a signal came the process is about to end: another one must not cut that short. */
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
    if (!state.came)
        restore();
}

double cake_shutdown_seconds_left(void)
{
    return state.until - cake_clock_now();
}

bool cake_shutdown_requested(void)
{
    if (!state.due && (state.came || cake_clock_now() >= state.until)) {
        state.due = true;
        cake_log(CAKE_INFO, "run", "%s: stops when what is under way through the layers has come back",
                 why());
    }
    return state.due;
}

bool cake_shutdown_forced(void)
{
    return state.came > 1;
}
