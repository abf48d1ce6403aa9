/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the metrics of a run. Out: sentences.
 * Invariant: every number in a sentence was measured; a condition that could not be measured does not hold.
 */
#include "report/diagnosis.h"

#include <stdbool.h>

static int busiest(const cake_run_metrics *f)
{
    int best = 0;
    for (int i = 1; i < f->n_rank; i++)
        best = f->rank[i].busy > f->rank[best].busy ? i : best;
    return best;
}

static double mean_busy(const cake_run_metrics *f)
{
    double all = 0;
    for (int i = 0; i < f->n_rank; i++)
        all += f->rank[i].busy;
    return all / f->n_rank;
}

/* Seconds of rank 0 outside of its layers: the engine's. */
static double root_work(const cake_run_metrics *f)
{
    double rest = f->rank[0].busy - f->rank[0].layer;
    return rest > 0 ? rest : 0;
}

static double rows_a_wave(const cake_run_metrics *f)
{
    return f->waves ? (double)f->rows / (double)f->waves : 0;
}

static double ms_a_wave(const cake_run_metrics *f, double seconds)
{
    return f->waves ? 1e3 * seconds / (double)f->waves : 0;
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

double cake_rank_metrics_idle(const cake_run_metrics *f, int rank)
{
    double busy = f->rank[rank].busy;
    return f->seconds > 0 && busy < f->seconds ? 1 - busy / f->seconds : 0;
}

double cake_rank_metrics_expected(const cake_run_metrics *f, int rank)
{
    double seconds = 0, planned = 0;
    for (int i = 0; i < f->n_rank; i++)
        if (i != rank && f->rank[i].planned > 0) {
            seconds += f->rank[i].layer;
            planned += f->rank[i].planned;
        }
    return planned > 0 ? seconds / planned * f->rank[rank].planned : 0;
}

void cake_diagnosis_waits(const cake_run_metrics *f, int rank, cake_buf *out)
{
    const double min_idle = 0.02;
    double idle = cake_rank_metrics_idle(f, rank);
    int slowest = busiest(f);
    int waits_for = rank == slowest ? f->rank[rank].upstream : slowest;
    if (idle < min_idle)
        cake_buf_adds(out, "-");
    else if (f->bubble >= idle / 2 || f->n_rank == 1)
        cake_buf_adds(out, "nothing to do");
    else if (waits_for == 0 && root_work(f) > f->rank[0].layer)
        cake_buf_adds(out, "root");
    else
        cake_buf_addf(out, "rank %d", f->first + waits_for);
}

static bool is_short(const cake_run_metrics *f)
{
    return f->seconds < 0.5 || f->waves < 8 * (int64_t)f->n_rank;
}

/* Threads that wait for a cpu look like slow layers, messages and engine. */
static bool is_oversubscribed(const cake_run_metrics *f)
{
    return f->oversubscription.host != NULL;
}

static void say_oversubscribed(const cake_run_metrics *f, cake_buf *out)
{
    const cake_oversubscription *c = &f->oversubscription;
    cake_buf_addf(out, "%s of %s %s %d thread%s on %.4g cpu%s and take%s turns: %suse --threads",
                  c->ranks == 1 ? "the rank" : "ranks", c->host, c->ranks == 1 ? "has" : "have", c->threads,
                  c->threads == 1 ? "" : "s", c->cpus, c->cpus == 1 ? "" : "s", c->ranks == 1 ? "s" : "",
                  c->ranks == 1 ? "" : "start fewer ranks, or ");
}

static void say_evicting(const cake_run_metrics *f, cake_buf *out)
{
    cake_buf_addf(out,
                  "KV memory ran out: %.0f %% of all rows were computed again after an eviction; "
                  "use more --kv-memory or fewer --max-seqs",
                  100 * f->again);
}

static void say_bubbles(const cake_run_metrics *f, cake_buf *out)
{
    cake_buf_addf(out,
                  "few sequences: the stages had no wave for %.0f %% of the time, and waves had %.0f rows; "
                  "more requests in flight would fill them (a longer file, a larger --max-seqs)",
                  100 * f->bubble, rows_a_wave(f));
}

static void say_moving(const cake_run_metrics *f, cake_buf *out)
{
    int slowest = busiest(f);
    cake_buf_addf(out,
                  "messages take %.0f %% of rank %d's time: "
                  "use a faster network, or an MPI with single-copy shared memory",
                  percent(f->rank[slowest].move, f->seconds), f->first + slowest);
}

/* Rank 0 is the bottleneck because of the engine, not because of its layers. */
static bool is_root(const cake_run_metrics *f)
{
    return f->n_rank > 1 && busiest(f) == 0 && f->rank[0].busy > 1.15 * mean_busy(f) &&
           root_work(f) > f->rank[0].layer;
}

static void say_root(const cake_run_metrics *f, cake_buf *out)
{
    cake_buf_addf(
        out,
        "stages wait for the root: of %.1f ms per wave embedding takes %.1f, the head %.1f, sampling %.1f, "
        "reading %.1f; give rank %d %s",
        ms_a_wave(f, f->rank[0].busy), ms_a_wave(f, f->embed), ms_a_wave(f, f->head), ms_a_wave(f, f->sample),
        ms_a_wave(f, f->read), f->first, f->rank[0].n_layer > 1 ? "fewer layers" : "more threads");
}

/* Milliseconds per layer and wave, on one rank or (-1) on all ranks except `but`. */
static double layer_ms(const cake_run_metrics *f, int rank, int but)
{
    double seconds = 0;
    int n = 0;
    for (int i = 0; i < f->n_rank; i++)
        if (i == rank || (rank < 0 && i != but)) {
            seconds += f->rank[i].layer;
            n += f->rank[i].n_layer;
        }
    return n ? ms_a_wave(f, seconds) / n : 0;
}

static void say_uneven(const cake_run_metrics *f, cake_buf *out)
{
    int slowest = busiest(f);
    double own = layer_ms(f, slowest, -1), others = layer_ms(f, -1, slowest);
    cake_buf_addf(out, "rank %d is the slowest: %.1f times the mean; ", f->first + slowest,
                  f->rank[slowest].busy / mean_busy(f));
    if (others > 0 && own > 1.3 * others)
        cake_buf_addf(out,
                      "a layer takes %.1f times as long there as on the others: check its threads and what "
                      "else runs there",
                      own / others);
    else
        cake_buf_adds(out, "give it fewer layers, or more threads");
}

static bool is_reading(const cake_run_metrics *f)
{
    return f->reading >= 0 ? f->reading > 0.5 : rows_a_wave(f) < 8;
}

static void say_reading(const cake_run_metrics *f, cake_buf *out)
{
    cake_buf_addf(out,
                  "memory bandwidth bound: waves of %.0f rows read all weights for few tokens; "
                  "more requests in flight (a longer file, a larger --max-seqs) would cost little more time",
                  rows_a_wave(f));
}

static void say_text(const cake_run_metrics *f, cake_buf *out)
{
    cake_buf_addf(out,
                  "sampling takes %.0f %% of rank %d's time and reading prompts %.0f %%: "
                  "with larger models the share is small",
                  percent(f->sample, f->seconds), f->first, percent(f->read, f->seconds));
}

static void say_idle(const cake_run_metrics *f, cake_buf *out)
{
    cake_buf_addf(out,
                  "even the busiest rank is idle for %.0f %% of the time: "
                  "waves differ in length, messages take long, or other processes use its cpus",
                  100 * cake_rank_metrics_idle(f, busiest(f)));
}

static void say_busy(const cake_run_metrics *f, cake_buf *out)
{
    double min = 1;
    for (int i = 0; i < f->n_rank; i++) {
        double busy = 1 - cake_rank_metrics_idle(f, i);
        min = busy < min ? busy : min;
    }
    cake_buf_addf(out,
                  "every rank was busy %.0f %% of the time%s: only more cores or machines make it faster",
                  100 * min, f->n_rank > 1 && min < 1 ? " or more" : "");
}

void cake_diagnosis_give(const cake_run_metrics *f, cake_buf *out)
{
    if (is_short(f))
        return;
    if (is_oversubscribed(f))
        say_oversubscribed(f, out);
    else if (f->again > 0.05)
        say_evicting(f, out);
    else if (f->n_rank > 1 && f->bubble > 0.2)
        say_bubbles(f, out);
    else if (f->rank[busiest(f)].move > 0.1 * f->seconds)
        say_moving(f, out);
    else if (is_root(f))
        say_root(f, out);
    else if (f->n_rank > 1 && f->rank[busiest(f)].busy > 1.15 * mean_busy(f))
        say_uneven(f, out);
    else if (f->sample + f->read > 0.25 * f->seconds)
        say_text(f, out);
    else if (cake_rank_metrics_idle(f, busiest(f)) > 0.15)
        say_idle(f, out);
    else if (is_reading(f))
        say_reading(f, out);
    else
        say_busy(f, out);
}

void cake_diagnosis_late(const cake_run_metrics *f, cake_buf *out)
{
    double max_ratio = 1.2;
    int worst = -1;
    for (int i = 0; i < f->n_rank && !is_short(f) && !is_oversubscribed(f); i++) {
        double expected = cake_rank_metrics_expected(f, i);
        if (expected > 0 && f->rank[i].layer > max_ratio * expected) {
            worst = i;
            max_ratio = f->rank[i].layer / expected;
        }
    }
    if (worst >= 0)
        cake_buf_addf(out,
                      "rank %d is %.0f %% slower than planned: its layers took %.2f ms per wave, "
                      "at the speed of the other ranks they would have taken %.2f; "
                      "check what else runs there, its threads and its clock",
                      f->first + worst, 100 * max_ratio - 100, ms_a_wave(f, f->rank[worst].layer),
                      ms_a_wave(f, cake_rank_metrics_expected(f, worst)));
}
