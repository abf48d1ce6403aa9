/* SPDX-License-Identifier: Apache-2.0
 *
 * In: what a run has answered, what is under way, how much of the input was read. Out: the seconds that
 * are left. batch_io.c calls. Invariant: nothing is said where report/eta.c can say nothing of an answer.
 */
#include "run/time_left.h"

#include "base/clock.h"

/* What is open now, and what it is expected to take. */
typedef struct open_work {
    double requests;   /* that have begun; a choice is its part of one */
    double done, left; /* tokens, prompts weighed */
    double longest;    /* seconds that the one takes that takes longest, at its own pace */
    bool known;
} open_work;

bool cake_time_is_certain(const cake_sequence *s)
{
    return s->lead->request.params.ignore_eos == 1;
}

static void count_open(cake_batch_io *a)
{
    a->eta.open = 0;
    a->eta.so_far = 0;
    for (int i = 0; i < a->n_begun; i++)
        if (!cake_time_is_certain(a->begun[i])) {
            a->eta.open++;
            a->eta.so_far += cake_sequence_generated(a->begun[i]);
        }
}

static open_work look_at_open(const cake_batch_io *a)
{
    open_work open = {.known = true};
    for (int i = 0; i < a->n_begun; i++) {
        const cake_sequence *s = a->begun[i];
        int n = cake_sequence_generated(s), choices = s->lead->n_choice ? s->lead->n_choice : 1;
        double left = cake_eta_left(&a->eta, n, s->max_len - s->n_prompt, cake_time_is_certain(s));
        open.known = open.known && left >= 0;
        open.requests += 1.0 / choices;
        open.done += n + CAKE_ETA_PROMPT * s->n_prompt / choices;
        open.left += left;
        double seconds = n > 0 ? left * s->waited / n : 0;
        open.longest = seconds > open.longest ? seconds : open.longest;
    }
    return open;
}

/* How many requests nobody has begun, negative: unknown. */
static double count_waiting(const cake_batch_io *a, double begun)
{
    double read = a->counts.total ? 1 : cake_prompt_progress(a->preparation.prompt);
    double seen = (double)(a->taken + a->preparation.passed),
           unread = read > 0 ? seen * (1 - read) / read : -1;
    double known =
        (double)(a->counts.resumed - a->preparation.passed); /* results of earlier runs further on */
    if (unread < 0)
        return -1;
    unread = unread > known ? unread - known : 0;
    return unread + (double)(a->taken - a->counts.done) - begun;
}

/* Time goes by work; the longest answer takes its time alone, at the end. */
double cake_time_left(cake_batch_io *a)
{
    count_open(a);
    open_work open = look_at_open(a);
    double begun = (double)a->counts.done + open.requests, waiting = count_waiting(a, open.requests);
    if (!open.known || begun <= 0 || waiting < 0 || a->worked <= 0)
        return -1;
    double each = (a->finished + open.done + open.left) / begun;
    double left = (cake_clock_now() - a->started) * (open.left + waiting * each) / a->worked;
    return left > open.longest ? left : open.longest;
}
