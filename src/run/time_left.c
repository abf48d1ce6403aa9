/* SPDX-License-Identifier: Apache-2.0
 *
 * In: finished and unfinished answers, the share of the input that was read. Out: the seconds that are left.
 * Invariant: no estimate where report/eta.c has none for an answer.
 */
#include "run/time_left.h"

#include "base/clock.h"

/* Unfinished answers, and what they are expected to take. */
typedef struct open_work {
    double requests;   /* begun requests; a choice counts as its part of one */
    double done, left; /* tokens; prompts are weighted */
    double longest;    /* maximum seconds of any of them, at its own pace */
    bool known;
} open_work;

bool cake_time_is_certain(const cake_sequence *s)
{
    return s->lead->request.params.ignore_eos == 1;
}

static void count_open(cake_batch_io *io)
{
    io->eta.open = 0;
    io->eta.so_far = 0;
    for (int i = 0; i < io->n_begun; i++)
        if (!cake_time_is_certain(io->begun[i])) {
            io->eta.open++;
            io->eta.so_far += cake_sequence_generated(io->begun[i]);
        }
}

static open_work sum_open(const cake_batch_io *io)
{
    open_work open = {.known = true};
    for (int i = 0; i < io->n_begun; i++) {
        const cake_sequence *s = io->begun[i];
        int n = cake_sequence_generated(s), choices = s->lead->n_choice ? s->lead->n_choice : 1;
        double left = cake_eta_left(&io->eta, n, s->max_len - s->n_prompt, cake_time_is_certain(s));
        open.known = open.known && left >= 0;
        open.requests += 1.0 / choices;
        open.done += n + CAKE_ETA_PROMPT * s->n_prompt / choices;
        open.left += left;
        double seconds = n > 0 ? left * s->waited / n : 0;
        open.longest = seconds > open.longest ? seconds : open.longest;
    }
    return open;
}

/* Requests that are not begun; negative: unknown. */
static double count_waiting(const cake_batch_io *io, double begun)
{
    double read = io->counts.total ? 1 : cake_prompt_progress(io->preparation.prompt);
    double seen = (double)(io->taken + io->preparation.passed),
           unread = read > 0 ? seen * (1 - read) / read : -1;
    double known = (double)(io->counts.resumed -
                            io->preparation.passed); /* results of earlier runs, further on in the input */
    if (unread < 0)
        return -1;
    unread = unread > known ? unread - known : 0;
    return unread + (double)(io->taken - io->counts.done) - begun;
}

/* Time is proportional to work, but at least that of the longest answer alone. */
double cake_time_left(cake_batch_io *io)
{
    count_open(io);
    open_work open = sum_open(io);
    double begun = (double)io->counts.done + open.requests, waiting = count_waiting(io, open.requests);
    if (!open.known || begun <= 0 || waiting < 0 || io->worked <= 0)
        return -1;
    double each = (io->finished + open.done + open.left) / begun;
    double left = (cake_clock_now() - io->started) * (open.left + waiting * each) / io->worked;
    return left > open.longest ? left : open.longest;
}
