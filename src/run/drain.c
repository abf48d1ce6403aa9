/* SPDX-License-Identifier: Apache-2.0
 *
 * In: signals, options, the environment. Out: whether to stop. run.c calls.
 * Invariant: a handler does nothing but count.
 */
#include "run/drain.h"

#include <math.h>
#include <signal.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/slurm.h"

enum {
    MARGIN = 60
}; /* seconds before the job's end at which the run stops, unless --stop-before says otherwise */

static const struct {
    int number;
    const char *name;
} taken[] = {{SIGTERM, "SIGTERM"}, {SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"}};

enum { N_TAKEN = sizeof taken / sizeof *taken };

static struct {
    struct sigaction before[N_TAKEN];
    volatile sig_atomic_t came, latest; /* signals that came; the latest one */
    double until;       /* when the run has to stop, as cake_clock_now counts; INFINITY: no end is known */
    const char *reason; /* what ends then, for the message */
    bool due;
} state = {.until = INFINITY};

static void note(int number)
{
    state.latest = number;
    if (state.came < 2)
        state.came = state.came + 1;
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

void cake_drain_listen(void)
{
    struct sigaction ours = {.sa_handler = note, .sa_flags = SA_RESTART};
    sigemptyset(&ours.sa_mask);
    for (int i = 0; i < N_TAKEN; i++)
        sigaction(taken[i].number, &ours, &state.before[i]);
}

static void restore(void)
{
    for (int i = 0; i < N_TAKEN; i++)
        sigaction(taken[i].number, &state.before[i], NULL);
}

void cake_drain_pass(void)
{
    restore();
    if (state.came)
        raise(state.latest);
}

cake_err cake_drain_open(const cake_options *options, const cake_world *world)
{
    return cake_world_agree(world, world->rank ? CAKE_OK : find_end(options));
}

/* If a signal came the process is about to end: another one must not cut that short. */
void cake_drain_close(void)
{
    if (!state.came)
        restore();
}

static const char *why(void)
{
    for (int i = 0; state.came && i < N_TAKEN; i++)
        if (taken[i].number == state.latest)
            return taken[i].name;
    return state.reason;
}

double cake_drain_left(void)
{
    return state.until - cake_clock_now();
}

bool cake_drain_due(void)
{
    if (!state.due && (state.came || cake_clock_now() >= state.until)) {
        state.due = true;
        cake_log(CAKE_INFO, "run", "%s: stops when what is under way through the layers has come back",
                 why());
    }
    return state.due;
}

bool cake_drain_at_once(void)
{
    return state.came > 1;
}
