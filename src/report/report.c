/* SPDX-License-Identifier: Apache-2.0
 *
 * In: statistics of each rank (cake_report_stage, gathered by gather.c). Out: metrics of replicas, lines on
 * standard error.
 */
#include "report/internal.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/size.h"

cake_roofline_summary cake_report_roofline(const cake_report *r, int first, int count)
{
    cake_roofline_summary all = {.share = NAN};
    bool known = count > 0;
    for (int i = first; i < first + count; i++) {
        const cake_report_stage *s = &r->stages[i];
        cake_flops_bytes work = cake_roofline_sum(&s->roofline);
        all.work.flops += work.flops;
        all.work.bytes += work.bytes;
        known = known && s->peak_flops > 0 && s->peak_bandwidth > 0;
        if (!known)
            continue;
        double reading;
        all.seconds += cake_roofline_seconds(&s->roofline, s->peak_flops, s->peak_bandwidth, &reading);
        all.reading += reading;
        all.peak_flops += s->peak_flops;
        all.peak_bandwidth += s->peak_bandwidth;
    }
    if (!known)
        return (cake_roofline_summary){.work = all.work, .share = NAN};
    if (r->run_s > 0)
        all.share = all.seconds / count / r->run_s;
    return all;
}

double cake_report_rate(int64_t n, double seconds)
{
    return seconds > 0 ? (double)n / seconds : 0;
}

int cake_report_replica(const cake_report *r, int rank)
{
    return rank / (r->world->size / r->n_replica);
}

const cake_plan *cake_report_plan(const cake_report *r, int rank)
{
    return &r->plans[cake_report_replica(r, rank)];
}

static const cake_engine_stats *engine_of(const cake_report *r, int rank)
{
    return &r->stages[cake_report_plan(r, rank)->first].root;
}

cake_engine_stats cake_report_engines(const cake_report *r)
{
    cake_engine_stats sum = {0};
    for (int i = 0; i < r->n_replica; i++) {
        const cake_engine_stats *one = &r->stages[r->plans[i].first].root;
        sum.waves += one->waves;
        sum.rows += one->rows;
        sum.schedule.evictions += one->schedule.evictions;
        sum.schedule.shared += one->schedule.shared;
        sum.schedule.states += one->schedule.states;
        sum.speculation.drafted += one->speculation.drafted;
        sum.speculation.accepted += one->speculation.accepted;
    }
    return sum;
}

double cake_report_per_pass(const cake_report *r)
{
    const int64_t right = cake_report_engines(r).speculation.accepted, passes = r->counts.generated - right;
    return passes > 0 ? (double)r->counts.generated / (double)passes : 0;
}

double cake_report_ms(const cake_report *r, int rank, double seconds)
{
    int64_t waves = engine_of(r, rank)->waves;
    return waves ? 1e3 * seconds / (double)waves : 0;
}

/* The other rank that sends waves to a rank's first hop, if any; to a rank 0 without layers it is the last
 * hop. */
static int upstream(const cake_plan *plan, int rank)
{
    for (int i = 0; i < plan->n_hop; i++)
        if (plan->hop[i].rank == rank && plan->hop[i ? i - 1 : plan->n_hop - 1].rank != rank)
            return plan->hop[i ? i - 1 : plan->n_hop - 1].rank;
    return plan->hop[plan->n_hop - 1].rank;
}

/* Metrics of a replica. Fills ranks [n_rank of the replica], which the result points to. */
static cake_run_metrics metrics_of(const cake_report *r, int replica, cake_rank_metrics *ranks)
{
    const cake_plan *plan = &r->plans[replica];
    const cake_report_stage *stages = &r->stages[plan->first];
    const cake_engine_stats *root = &stages->root;
    cake_engine_stats all = cake_report_engines(r);
    cake_run_metrics f = {.rank = ranks,
                          .n_rank = plan->n_rank,
                          .first = plan->first,
                          .seconds = r->run_s,
                          .bubble = r->run_s > 0 ? stages->bubble_s / r->run_s : 0,
                          .reading = -1,
                          .waves = root->waves,
                          .rows = root->rows,
                          .embed = root->embed_s,
                          .head = root->head_s,
                          .sample = root->sample_s,
                          .read = root->read_s};
    int64_t once = r->counts.prompt - all.schedule.shared + r->counts.generated + all.speculation.drafted -
                   all.speculation.accepted;
    if (all.schedule.evictions && all.rows > once)
        f.again = (double)(all.rows - once) / (double)all.rows;
    for (int i = f.n_rank; i-- > 0;)
        if (stages[i].sharing_ranks)
            f.oversubscription = (cake_oversubscription){stages[i].host, stages[i].sharing_ranks,
                                                         stages[i].sharing_threads, stages[i].shared_cpus};
    for (int i = 0; i < f.n_rank; i++)
        ranks[i] = (cake_rank_metrics){.upstream = upstream(plan, i),
                                       .busy = stages[i].busy_s,
                                       .layer = stages[i].compute_s,
                                       .move = stages[i].move_s,
                                       .planned = stages[i].planned};
    for (int i = 0; i < plan->n_hop; i++)
        ranks[plan->hop[i].rank].n_layer += plan->hop[i].count;
    cake_roofline_summary peaks = cake_report_roofline(r, plan->first, plan->n_rank);
    if (peaks.seconds > 0)
        f.reading = peaks.reading / peaks.seconds;
    return f;
}

cake_run_metrics *cake_report_metrics(const cake_report *r)
{
    size_t n = (size_t)r->n_replica;
    cake_run_metrics *all = cake_alloc(n, sizeof *all);
    cake_rank_metrics *ranks = cake_alloc((size_t)r->world->size, sizeof *ranks);
    for (int i = 0; i < r->n_replica; i++)
        all[i] = metrics_of(r, i, ranks + r->plans[i].first);
    return all;
}

void cake_report_metrics_free(cake_run_metrics *all)
{
    free((void *)all[0].rank);
    free(all);
}

double cake_report_idle(const cake_run_metrics *all, const cake_report *r, int rank)
{
    const cake_run_metrics *f = &all[cake_report_replica(r, rank)];
    return cake_rank_metrics_idle(f, rank - f->first);
}

void cake_report_waits(const cake_run_metrics *all, const cake_report *r, int rank, cake_buf *out)
{
    const cake_run_metrics *f = &all[cake_report_replica(r, rank)];
    cake_diagnosis_waits(f, rank - f->first, out);
}

/* Advice for the replica that was idle most: it has most to gain. */
void cake_report_advise(const cake_run_metrics *all, const cake_report *r, cake_buf *out)
{
    int worst = 0;
    double max_idle = -1;
    for (int i = 0; i < r->n_replica; i++) {
        double idle = 0;
        for (int rank = 0; rank < all[i].n_rank; rank++)
            idle += cake_rank_metrics_idle(&all[i], rank);
        worst = idle > max_idle ? i : worst;
        max_idle = idle > max_idle ? idle : max_idle;
    }
    cake_diagnosis_give(&all[worst], out);
}

void cake_report_threads(const cake_report_stage *s, cake_buf *out)
{
    cake_buf_addf(out, "%d", s->threads);
    if (s->threads_decode < s->threads)
        cake_buf_addf(out, "/%d", s->threads_decode);
}

enum { N_COLUMN = 8 };

/* The table of stages, a line each; columns are as wide as their longest cell. */
static void say_table(const cake_report *r, const cake_run_metrics *all)
{
    static const char *const head[N_COLUMN] = {"rank", "host", "layers",    "threads",
                                               "busy", "idle", "waits for", "ms a wave"};
    int n = r->world->size, width[N_COLUMN];
    cake_buf *cell = cake_alloc((size_t)n * N_COLUMN, sizeof *cell), line = {0};
    for (int i = 0; i < n; i++) {
        cake_buf *c = &cell[i * N_COLUMN];
        double idle = cake_report_idle(all, r, i);
        cake_buf_addf(&c[0], "%d", i);
        cake_buf_adds(&c[1], r->stages[i].host);
        cake_plan_layers(cake_report_plan(r, i), i - cake_report_plan(r, i)->first, &c[2]);
        cake_report_threads(&r->stages[i], &c[3]);
        cake_buf_addf(&c[4], "%.0f %%", 100 - 100 * idle);
        cake_buf_addf(&c[5], "%.0f %%", 100 * idle);
        cake_report_waits(all, r, i, &c[6]);
        cake_buf_addf(&c[7], "%.2f", cake_report_ms(r, i, r->stages[i].busy_s));
    }
    for (int row = -1; row < n; row++) {
        cake_buf_cut(&line, 0);
        for (int j = 0; j < N_COLUMN; j++) {
            width[j] = row < 0 ? (int)strlen(head[j]) : width[j];
            for (int i = 0; i < n && row < 0; i++)
                width[j] =
                    (int)cell[i * N_COLUMN + j].len > width[j] ? (int)cell[i * N_COLUMN + j].len : width[j];
            const char *text = row < 0 ? head[j] : cell[row * N_COLUMN + j].data;
            bool left = j == 1 || j == 2 || j == 6; /* words are left aligned, numbers right */
            cake_buf_addf(&line, "%s%*s", j ? "  " : "", left ? -width[j] : width[j], text);
        }
        cake_log(CAKE_INFO, NULL, "%s", line.data);
    }
    for (int i = 0; i < n * N_COLUMN; i++)
        cake_buf_free(&cell[i]);
    cake_buf_free(&line);
    free(cell);
}

double cake_report_joules(const cake_report_stage *stages, int n)
{
    double sum = 0;
    bool any = false;
    for (int i = 0; i < n; i++) {
        bool again = !stages[i].gpu.used;
        for (int j = 0; j < i && !again; j++) /* ranks that share a GPU report the same energy */
            again = stages[j].gpu.used && stages[j].gpu.number == stages[i].gpu.number &&
                    !strcmp(stages[j].host, stages[i].host);
        any = any || stages[i].gpu.used;
        if (!again && stages[i].joules < 0)
            return -1;
        sum += again ? 0 : stages[i].joules;
    }
    return any ? sum : -1;
}

double cake_report_million(const cake_report *r, double joules)
{
    int64_t tokens = r->counts.prompt + r->counts.generated;
    return joules < 0 || !tokens ? -1 : 1e6 * joules / (double)tokens;
}

static void say_energy(const cake_report *r)
{
    double joules = cake_report_joules(r->stages, r->world->size);
    if (joules >= 0 && r->run_s > 0)
        cake_log(CAKE_INFO, NULL, "GPUs: %.4g J, %.4g W, %.4g J per million tokens", joules,
                 joules / r->run_s, cake_report_million(r, joules));
}

static void say_replicas(const cake_report *r)
{
    cake_buf line = {0};
    for (int i = 0; i < r->n_replica; i++)
        cake_buf_addf(&line, "%s%lld", i ? ", " : "", (long long)r->stages[r->plans[i].first].requests);
    if (r->n_replica > 1)
        cake_log(CAKE_INFO, NULL, "requests of the %d replicas: %s", r->n_replica, line.data);
    cake_buf_free(&line);
}

/* Reading of weights that are not held: all bytes, and the rank that waited longest for them. */
static void say_weights(const cake_report *r)
{
    int64_t bytes = 0;
    int longest = 0;
    for (int i = 0; i < r->world->size; i++) {
        bytes += r->stages[i].stream_bytes;
        longest = r->stages[i].stream_wait_s > r->stages[longest].stream_wait_s ? i : longest;
    }
    const cake_report_stage *s = &r->stages[longest];
    if (bytes)
        cake_log(CAKE_INFO, NULL,
                 "%s of weights were read for waves; rank %d read %.3g GB/s and waited %.3g s for them",
                 cake_size_text(bytes).s, longest,
                 s->stream_s > 0 ? 1e-9 * (double)s->stream_bytes / s->stream_s : 0, s->stream_wait_s);
}

/* How waves met experts, on all ranks together. */
static void say_experts(const cake_report *r)
{
    cake_expert_use all = {0};
    for (int i = 0; i < r->world->size; i++)
        cake_expert_use_merge(&all, &r->stages[i].experts);
    const double n = (double)all.visits;
    if (all.visits)
        cake_log(
            CAKE_INFO, NULL,
            "experts: a wave met %.1f of %d in a layer; rows of one: %.1f to %.1f, mean %.1f; %.3g MB of "
            "weights a row (%.3g MB if rows chose at random)",
            all.distinct / n, r->n_expert, all.min_rows / n, all.max_rows / n, all.mean_rows / n,
            1e-6 * all.weight_bytes / all.rows, 1e-6 * all.expected_bytes / all.rows);
}

/* Table and advice. A short run says little, and a single rank waits for nobody: then only at level debug. */
static void say_details(const cake_report *r)
{
    const double min_seconds = 10; /* seconds */
    const bool more = cake_log_wants(CAKE_DEBUG, NULL);
    if (r->run_s < min_seconds && !more)
        return;
    cake_run_metrics *all = cake_report_metrics(r);
    cake_buf advice = {0};
    if (r->world->size > 1 || more)
        say_table(r, all);
    for (int i = 0; i < r->n_replica; i++) {
        cake_buf_cut(&advice, 0);
        cake_diagnosis_late(&all[i], &advice);
        if (advice.len)
            cake_log(CAKE_INFO, NULL, "%s", advice.data);
    }
    cake_buf_cut(&advice, 0);
    cake_report_advise(all, r, &advice);
    if (advice.len)
        cake_log(CAKE_INFO, NULL, "advice: %s", advice.data);
    cake_buf_free(&advice);
    cake_report_metrics_free(all);
}

double cake_report_perplexity(const cake_scored *s)
{
    return exp(-s->logprob / (double)s->tokens);
}

double cake_report_bits_per_byte(const cake_scored *s)
{
    return -s->logprob / log(2) / (double)s->bytes;
}

static void say_scores(const cake_scored *s)
{
    if (s->tokens && s->bytes)
        cake_log(CAKE_INFO, NULL,
                 "scored %lld tokens (%lld bytes): %.6g nats, %.4f bits per byte, perplexity %.4f",
                 (long long)s->tokens, (long long)s->bytes, -s->logprob, cake_report_bits_per_byte(s),
                 cake_report_perplexity(s));
}

void cake_report_say(const cake_report *r)
{
    const cake_counts *c = &r->counts;
    const cake_speculation_stats e = cake_report_engines(r).speculation;
    cake_log(CAKE_INFO, NULL,
             "%lld request%s (%lld failed), %lld prompt and %lld generated tokens in %.2f s: %.1f prompt and "
             "%.1f generated tokens/s",
             (long long)c->done, c->done == 1 ? "" : "s", (long long)c->failed, (long long)c->prompt,
             (long long)c->generated, r->run_s, cake_report_rate(c->prompt, r->run_s),
             cake_report_rate(c->generated, r->run_s));
    if (e.accepted)
        cake_log(CAKE_INFO, NULL, "%lld of %lld drafted tokens were right: %.2f generated tokens a pass",
                 (long long)e.accepted, (long long)e.drafted, cake_report_per_pass(r));
    if (c->resumed)
        cake_log(CAKE_INFO, NULL, "in addition %lld result%s of earlier runs (%lld failed%s)",
                 (long long)c->resumed, c->resumed == 1 ? "" : "s", (long long)c->resumed_failed,
                 c->resumed_failed ? ": --retry-errors repeats these" : "");
    say_scores(&c->scored);
    say_replicas(r);
    say_energy(r);
    say_experts(r);
    say_weights(r);
    say_details(r);
}
