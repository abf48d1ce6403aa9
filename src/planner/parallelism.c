/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the cluster, the input, a number of requests. Out: a number of replicas; or whether a given number is
 * possible.
 *
 * Every number of stages that divides the ranks is planned, and its run time is simulated as `plan` does it.
 * The rates include bandwidth that replicas on one host share, because all ranks measure at the same time.
 * The time in which each replica loads all weights is added.
 */
#include "planner/parallelism.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "planner/estimate.h"
#include "planner/partition.h"

/* Share of the read rate at which weights are loaded from the page cache and packed (performance-log.md). */
#define LOAD_SHARE 0.12
#define MIN_GAIN   0.90 /* more stages must finish in less than this share of the time */

enum { DEFAULT_REQUESTS = 16384 }; /* requests assumed if the input does not say how many */

/* Seconds until the slowest rank of a replica has its weights. */
static double load_seconds(const cake_planning *p)
{
    const cake_plan *plan = &p->plan;
    double slowest = (double)p->input->layers.ends / p->cluster->rate[plan->first].bytes;
    for (int i = 0; i < plan->n_hop; i++) {
        int64_t bytes = plan->hop[i].rank ? 0 : p->input->layers.ends;
        for (int j = 0; j < plan->hop[i].count; j++)
            bytes += p->input->layers.bytes[plan->hop[i].first + j];
        slowest = fmax(slowest, (double)bytes / p->cluster->rate[plan->first + plan->hop[i].rank].bytes);
    }
    return slowest / LOAD_SHARE;
}

/* One shape, planned so that its run time can be estimated. */
typedef struct trial {
    int n, size; /* ranks of each */
    cake_planning p;
    cake_plan *plans; /* [n] owned */
    double load;      /* seconds until all weights are loaded */
    bool fits;
} trial;

static trial plan_trial(const cake_planning *p, int n, int size)
{
    trial t = {.n = n, .size = size, .p = *p, .fits = true};
    int pages[CAKE_MAX_KV_GROUPS];
    t.plans = cake_alloc((size_t)n, sizeof *t.plans);
    t.p.n_replica = n;
    for (int r = 0; r < n && t.fits; r++) {
        if (r && cake_partition_same(p, (r - 1) * size, r * size, size)) {
            t.plans[r] = cake_plan_copy(&t.plans[r - 1], r * size);
            continue;
        }
        t.p.plan = (cake_plan){0};
        t.fits = !cake_partition_solve(&t.p, r * size, size);
        cake_partition_size_kv(&t.p);
        t.load = fmax(t.load, load_seconds(&t.p));
        t.plans[r] = t.p.plan;
        for (int group = 0; group < t.p.shape.n_kv_group; group++) {
            int own = t.p.shape.n_page[group];
            pages[group] = r && pages[group] < own ? pages[group] : own;
        }
    }
    t.p.plan = (cake_plan){0};
    if (t.fits)
        memcpy(t.p.shape.n_page, pages, sizeof pages);
    return t;
}

static void free_trial(trial *t)
{
    for (int r = 0; t->plans && r < t->n; r++)
        cake_plan_free(&t->plans[r]);
    free(t->plans);
    *t = (trial){0};
}

/* Seconds of loading and of so many requests. Shorter requests are simulated and scaled: the proportions of
 * prompts, answers, full waves and the drain stay the same. */
static double trial_seconds(const trial *t, int64_t requests)
{
    enum { SCALE = 4 };
    cake_workload workload = {0};
    int sampled = 2 * t->p.shape.n_lane * t->p.shape.lane_seqs; /* twice what can be in flight */
    if (t->p.cluster->rate[0].flops <= 0)                       /* nothing was measured */
        return 0;
    cake_workload_guess(&t->p, requests, CAKE_WORKLOAD_USUAL / SCALE, &workload);
    workload.n_first = workload.n_first < sampled ? workload.n_first : sampled;
    double seconds = cake_estimate_make(&t->p, t->plans, &workload, true, NULL, NULL).seconds;
    cake_workload_free(&workload);
    return t->load + SCALE * seconds;
}

/* base: 0, or the seconds that count as 1. */
static void describe_trial(const trial *t, double seconds, double base, cake_buf *why)
{
    cake_buf_addf(why, "%s%d x %d ", why->len ? ", " : "", t->n, t->size);
    if (!t->fits)
        cake_buf_addf(why, "do%s not fit", t->n == 1 ? "es" : "");
    else if (seconds > 0 && base > 0)
        cake_buf_addf(why, seconds < 10 * base ? "%.2f" : "%.0f", seconds / base);
    else if (seconds > 0)
        cake_buf_addf(why, seconds < 1000 ? "%.3g s" : "%.0f s", seconds);
    else
        cake_buf_adds(why, t->n == 1 ? "fits" : "fit");
}

/* The fewest replicas that have no more stages than layers. */
static int fewest_of(int n_rank, int n_layer)
{
    int fewest = n_rank;
    for (int size = 1; size <= n_rank && size <= n_layer; size++)
        fewest = n_rank % size ? fewest : n_rank / size;
    return fewest;
}

int cake_parallelism_best(const cake_planning *p, int n_rank, int64_t requests, bool in_seconds,
                          cake_buf *why)
{
    int n_layer = cake_model_config(p->input->model)->n_layer, fewest = fewest_of(n_rank, n_layer);
    int best = 0, worse = 0;
    double best_seconds = 0, base = 0;
    trial first = {0}; /* the first that fits; simulated only if another one fits */
    int64_t n_request = requests ? requests : DEFAULT_REQUESTS;
    cake_buf_adds(why, "");
    for (int size = 1; size <= n_rank && size <= n_layer && worse < 2; size++) {
        int n = n_rank / size;
        if (n_rank % size || (requests && n > requests && n > fewest)) /* some replica would be idle */
            continue;
        trial t = plan_trial(p, n, size);
        if (t.fits && !best) {
            best = n;
            first = t;
            continue;
        }
        if (first.fits) {
            best_seconds = trial_seconds(&first, n_request);
            base = in_seconds ? 0 : best_seconds;
            describe_trial(&first, best_seconds, base, why);
            free_trial(&first);
        }
        double seconds = t.fits ? trial_seconds(&t, n_request) : 0;
        describe_trial(&t, seconds, base, why);
        if (t.fits && seconds < MIN_GAIN * best_seconds) {
            best = n;
            best_seconds = seconds;
            worse = 0;
        } else if (best) {
            worse++;
        }
        free_trial(&t);
    }
    if (first.fits)
        describe_trial(&first, 0, 0, why);
    free_trial(&first);
    return best ? best : fewest;
}

int cake_parallelism_decide(const cake_planning *p, int n_rank, int64_t requests)
{
    cake_buf why = {0};
    const bool more = cake_log_wants(CAKE_DEBUG, "planner");
    int n = cake_parallelism_best(p, n_rank, requests, more, &why), size = n_rank / n;
    char count[32] = "many", lengths[96] = "";
    if (requests)
        snprintf(count, sizeof count, "%lld", (long long)requests);
    if (more) /* seconds are of these lengths, which the run's requests hardly have */
        snprintf(lengths, sizeof lengths, " of %d + %d tokens", CAKE_WORKLOAD_USUAL, CAKE_WORKLOAD_USUAL / 3);
    cake_log(CAKE_INFO, "planner",
             "planned: %d replica%s of %d stage%s (replicas x stages, %s for %s request%s%s: %s); "
             "--replicas R decides otherwise",
             n, n == 1 ? "" : "s", size, size == 1 ? "" : "s", more ? "time" : "relative time", count,
             requests == 1 ? "" : "s", lengths, why.data);
    cake_buf_free(&why);
    return n;
}

/* "--replicas 1, 2 or 4": numbers of them that the ranks can make. */
static void add_possible(int n_rank, int n_layer, cake_buf *out)
{
    int last = 0;
    cake_buf_adds(out, "");
    for (int n = 1; n <= n_rank; n++) {
        if (n_rank % n || n_rank / n > n_layer)
            continue;
        if (last)
            cake_buf_addf(out, "%s%d", out->len ? ", " : ", or use --replicas ", last);
        last = n;
    }
    cake_buf_addf(out, "%s%d", out->len ? " or " : ", or use --replicas ", last);
}

static cake_err fail_replicas(int n, int n_rank, int n_layer, const char *how, bool propose)
{
    cake_buf works = {0}, replicas = {0};
    cake_err err;
    if (propose)
        add_possible(n_rank, n_layer, &works);
    else
        cake_buf_adds(&works, "");
    cake_buf_adds(&replicas, "");
    if (n > 1)
        cake_buf_addf(&replicas, "%d replicas of ", n);
    if (n_rank % n)
        err = cake_fail_usage("--replicas %d: %d rank%s cannot be divided evenly; "
                              "%s %d or another multiple of %d%s",
                              n, n_rank, n_rank == 1 ? "" : "s", how, (n_rank / n + 1) * n, n, works.data);
    else
        err = cake_fail_usage("%d ranks for %sa model of %d layer%s: "
                              "each rank needs at least one; %s %d or fewer%s",
                              n_rank, replicas.data, n_layer, n_layer == 1 ? "" : "s", how, n * n_layer,
                              works.data);
    cake_buf_free(&works);
    cake_buf_free(&replicas);
    return err;
}

cake_err cake_parallelism_check(int n_rank, int n, int n_layer, bool reports, const char *how, bool propose)
{
    if (n_rank % n == 0 && n_rank / n <= n_layer)
        return CAKE_OK;
    return reports ? fail_replicas(n, n_rank, n_layer, how, propose) : CAKE_ERR_USAGE;
}
