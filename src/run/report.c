/* SPDX-License-Identifier: Apache-2.0 */
#include "run/report.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/log.h"
#include "base/version.h"
#include "run/advice.h"
#include "run/whole.h"

extern char **environ;

void cake_times_add(cake_times *t, double seconds)
{
    enum { KEPT = 1 << 16 };
    int64_t at = t->n;
    t->seen++;
    if (t->n == KEPT) { /* reservoir (Vitter 1985) with a fixed generator: a report is not a result */
        uint64_t z = t->seen * 0x9E3779B97F4A7C15u;
        z = (z ^ z >> 29) * 0xBF58476D1CE4E5B9u;
        at = (int64_t)((z ^ z >> 32) % t->seen);
        if (at >= KEPT)
            return;
    } else if (t->n++ == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 256;
        t->value = cake_grow(t->value, (size_t)t->cap, sizeof *t->value);
    }
    t->value[at] = (float)(1e3 * seconds);
}

void cake_times_free(cake_times *t)
{
    free(t->value);
    *t = (cake_times){0};
}

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void add_times(cake_buf *out, const char *name, cake_times *t)
{
    if (t->n) /* no memory otherwise, which qsort may not be given */
        qsort(t->value, (size_t)t->n, sizeof *t->value, ascending);
    cake_buf_addf(out, "  \"%s\": {\"p50\": ", name);
    cake_json_add_real(out, t->n ? (double)t->value[t->n / 2] : NAN);
    cake_buf_adds(out, ", \"p99\": ");
    cake_json_add_real(out, t->n ? (double)t->value[t->n * 99 / 100] : NAN);
    cake_buf_adds(out, "},\n");
}

/* What was computed at all ranks, and what their peaks would have taken for it. */
typedef struct roofline {
    cake_effort work;
    double peak_flops, peak_bandwidth; /* of all ranks together; 0: of one they are not known */
    double seconds, reading;           /* of all ranks, one after the other; in which memory binds */
    double share;                      /* of the run; NaN: unknown */
} roofline;

static roofline roofline_of_ranks(const cake_report *r, int first, int count)
{
    roofline all = {.share = NAN};
    bool known = count > 0;
    for (int i = first; i < first + count; i++) {
        const cake_report_stage *s = &r->stages[i];
        cake_effort work = cake_roof_sum(&s->roof);
        all.work.flops += work.flops;
        all.work.bytes += work.bytes;
        known = known && s->peak_flops > 0 && s->peak_bandwidth > 0;
        if (!known)
            continue;
        double reading;
        all.seconds += cake_roof_seconds(&s->roof, s->peak_flops, s->peak_bandwidth, &reading);
        all.reading += reading;
        all.peak_flops += s->peak_flops;
        all.peak_bandwidth += s->peak_bandwidth;
    }
    if (!known)
        return (roofline){.work = all.work, .share = NAN};
    if (r->run_s > 0)
        all.share = all.seconds / count / r->run_s;
    return all;
}

static double rate(int64_t n, double seconds)
{
    return seconds > 0 ? (double)n / seconds : 0;
}

static int replica_of(const cake_report *r, int rank)
{
    return rank / (r->world->size / r->n_replica);
}

static const cake_plan *plan_of(const cake_report *r, int rank)
{
    return &r->plans[replica_of(r, rank)];
}

/* Of the rank's replica. */
static const cake_root_stats *root_of(const cake_report *r, int rank)
{
    return &r->stages[plan_of(r, rank)->first].root;
}

/* What all roots have counted together. */
static cake_root_stats sum_roots(const cake_report *r)
{
    cake_root_stats sum = {0};
    for (int i = 0; i < r->n_replica; i++) {
        const cake_root_stats *one = &r->stages[r->plans[i].first].root;
        sum.waves += one->waves;
        sum.rows += one->rows;
        sum.schedule.evictions += one->schedule.evictions;
        sum.schedule.shared += one->schedule.shared;
        sum.schedule.states += one->schedule.states;
    }
    return sum;
}

/* Milliseconds a wave of the rank's replica. */
static double ms(const cake_report *r, int rank, double seconds)
{
    int64_t waves = root_of(r, rank)->waves;
    return waves ? 1e3 * seconds / (double)waves : 0;
}

/* The other rank that the waves of a rank's first hop come from, if there is one; rank 0's without a layer come from
 * the last hop. */
static int upstream(const cake_plan *plan, int rank)
{
    for (int i = 0; i < plan->n_hop; i++)
        if (plan->hop[i].rank == rank && plan->hop[i ? i - 1 : plan->n_hop - 1].rank != rank)
            return plan->hop[i ? i - 1 : plan->n_hop - 1].rank;
    return plan->hop[plan->n_hop - 1].rank;
}

/* What the advice for a replica is drawn from; ranks [of it] are filled and pointed to. */
static cake_figures figures_of(const cake_report *r, int replica, cake_figure *ranks)
{
    const cake_plan *plan = &r->plans[replica];
    const cake_report_stage *stages = &r->stages[plan->first];
    const cake_root_stats *root = &stages->root;
    cake_root_stats all = sum_roots(r);
    cake_figures f = {.rank = ranks,
                      .n_rank = plan->n_rank,
                      .first = plan->first,
                      .seconds = r->run_s,
                      .starved = r->run_s > 0 ? stages->starved_s / r->run_s : 0,
                      .reading = -1,
                      .waves = root->waves,
                      .rows = root->rows,
                      .embed = root->embed_s,
                      .head = root->head_s,
                      .sample = root->sample_s,
                      .read = root->read_s};
    int64_t once = r->counts.prompt - all.schedule.shared + r->counts.generated;
    if (all.schedule.evictions && all.rows > once)
        f.again = (double)(all.rows - once) / (double)all.rows;
    for (int i = 0; i < f.n_rank; i++)
        ranks[i] = (cake_figure){.upstream = upstream(plan, i),
                                 .busy = stages[i].busy_s,
                                 .layer = stages[i].compute_s,
                                 .move = stages[i].move_s,
                                 .planned = stages[i].planned};
    for (int i = 0; i < plan->n_hop; i++)
        ranks[plan->hop[i].rank].n_layer += plan->hop[i].count;
    roofline peaks = roofline_of_ranks(r, plan->first, plan->n_rank);
    if (peaks.seconds > 0)
        f.reading = peaks.reading / peaks.seconds;
    return f;
}

/* Of all replicas [n_replica], owned, with their ranks' behind them. */
static cake_figures *figures_of_all(const cake_report *r)
{
    size_t n = (size_t)r->n_replica;
    cake_figures *all = cake_alloc(n, sizeof *all);
    cake_figure *ranks = cake_alloc((size_t)r->world->size, sizeof *ranks);
    for (int i = 0; i < r->n_replica; i++)
        all[i] = figures_of(r, i, ranks + r->plans[i].first);
    return all;
}

static void free_figures(cake_figures *all)
{
    free((void *)all[0].rank);
    free(all);
}

static double idle_of(const cake_figures *all, const cake_report *r, int rank)
{
    const cake_figures *f = &all[replica_of(r, rank)];
    return cake_figure_idle(f, rank - f->first);
}

static void add_waits(const cake_figures *all, const cake_report *r, int rank, cake_buf *out)
{
    const cake_figures *f = &all[replica_of(r, rank)];
    cake_advice_waits(f, rank - f->first, out);
}

/* For the replica that was idle most: there is most to be gained. */
static void give_advice(const cake_figures *all, const cake_report *r, cake_buf *out)
{
    int worst = 0;
    double most = -1;
    for (int i = 0; i < r->n_replica; i++) {
        double idle = 0;
        for (int rank = 0; rank < all[i].n_rank; rank++)
            idle += cake_figure_idle(&all[i], rank);
        worst = idle > most ? i : worst;
        most = idle > most ? idle : most;
    }
    cake_advice_give(&all[worst], out);
}

void cake_report_layers(const cake_plan *plan, int rank, cake_buf *out)
{
    size_t before = out->len;
    for (int i = 0; i < plan->n_hop; i++)
        if (plan->hop[i].rank == rank)
            cake_buf_addf(out, "%s%d-%d", out->len > before ? "," : "", plan->hop[i].first,
                          plan->hop[i].first + plan->hop[i].count - 1);
    if (out->len == before)
        cake_buf_addc(out, '-');
}

void cake_report_threads(const cake_report_stage *s, cake_buf *out)
{
    cake_buf_addf(out, "%d", s->threads);
    if (s->threads_decode < s->threads)
        cake_buf_addf(out, "/%d", s->threads_decode);
}

enum { N_COLUMN = 8 };

/* The table of stages, a line each; columns are as wide as what stands in them. */
static void say_table(const cake_report *r, const cake_figures *all)
{
    static const char *const head[N_COLUMN] = {"rank", "host", "layers",    "threads",
                                               "busy", "idle", "waits for", "ms a wave"};
    int n = r->world->size, width[N_COLUMN];
    cake_buf *cell = cake_alloc((size_t)n * N_COLUMN, sizeof *cell), line = {0};
    for (int i = 0; i < n; i++) {
        cake_buf *c = &cell[i * N_COLUMN];
        double idle = idle_of(all, r, i);
        cake_buf_addf(&c[0], "%d", i);
        cake_buf_adds(&c[1], r->stages[i].host);
        cake_report_layers(plan_of(r, i), i - plan_of(r, i)->first, &c[2]);
        cake_report_threads(&r->stages[i], &c[3]);
        cake_buf_addf(&c[4], "%.0f %%", 100 - 100 * idle);
        cake_buf_addf(&c[5], "%.0f %%", 100 * idle);
        add_waits(all, r, i, &c[6]);
        cake_buf_addf(&c[7], "%.2f", ms(r, i, r->stages[i].busy_s));
    }
    for (int row = -1; row < n; row++) {
        cake_buf_cut(&line, 0);
        for (int j = 0; j < N_COLUMN; j++) {
            width[j] = row < 0 ? (int)strlen(head[j]) : width[j];
            for (int i = 0; i < n && row < 0; i++)
                width[j] =
                    (int)cell[i * N_COLUMN + j].len > width[j] ? (int)cell[i * N_COLUMN + j].len : width[j];
            const char *text = row < 0 ? head[j] : cell[row * N_COLUMN + j].data;
            bool left = j == 1 || j == 2 || j == 6; /* words; numbers stand on the right */
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
        for (int j = 0; j < i && !again; j++) /* ranks that share a GPU have seen the same */
            again = stages[j].gpu.used && stages[j].gpu.number == stages[i].gpu.number &&
                    !strcmp(stages[j].host, stages[i].host);
        any = any || stages[i].gpu.used;
        if (!again && stages[i].joules < 0)
            return -1;
        sum += again ? 0 : stages[i].joules;
    }
    return any ? sum : -1;
}

/* Joules a million tokens, as far as they are known. */
static double for_million(const cake_report *r, double joules)
{
    int64_t tokens = r->counts.prompt + r->counts.generated;
    return joules < 0 || !tokens ? -1 : 1e6 * joules / (double)tokens;
}

static void say_energy(const cake_report *r)
{
    double joules = cake_report_joules(r->stages, r->world->size);
    if (joules >= 0 && r->run_s > 0)
        cake_log(CAKE_INFO, NULL, "GPUs: %.4g J, %.4g W, %.4g J a million tokens", joules, joules / r->run_s,
                 for_million(r, joules));
}

static void add_energy(cake_buf *out, const cake_report *r)
{
    double joules = cake_report_joules(r->stages, r->world->size);
    bool used = false;
    for (int i = 0; i < r->world->size; i++)
        used = used || r->stages[i].gpu.used;
    if (!used)
        return;
    cake_json_put_known(out, "  \"energy\": {\"gpu_joules\": ", joules);
    cake_json_put_known(out, ", \"gpu_watts\": ", joules < 0 || r->run_s <= 0 ? -1 : joules / r->run_s);
    cake_json_put_known(out, ", \"joules_per_million_tokens\": ", for_million(r, joules));
    cake_buf_adds(out, "},\n");
}

/* Who answered how many. */
static void say_replicas(const cake_report *r)
{
    cake_buf line = {0};
    for (int i = 0; i < r->n_replica; i++)
        cake_buf_addf(&line, "%s%lld", i ? ", " : "", (long long)r->stages[r->plans[i].first].requests);
    if (r->n_replica > 1)
        cake_log(CAKE_INFO, NULL, "requests of the %d replicas: %s", r->n_replica, line.data);
    cake_buf_free(&line);
}

void cake_report_say(const cake_report *r)
{
    const cake_counts *c = &r->counts;
    cake_figures *all = figures_of_all(r);
    cake_buf advice = {0};
    cake_log(
        CAKE_INFO, NULL,
        "%lld request%s (%lld failed), %lld prompt and %lld generated tokens in %.2f s: %.1f + %.1f tokens/s",
        (long long)c->done, c->done == 1 ? "" : "s", (long long)c->failed, (long long)c->prompt,
        (long long)c->generated, r->run_s, rate(c->prompt, r->run_s), rate(c->generated, r->run_s));
    if (c->resumed)
        cake_log(CAKE_INFO, NULL, "%lld results of earlier runs beside them", (long long)c->resumed);
    say_table(r, all);
    say_replicas(r);
    say_energy(r);
    for (int i = 0; i < r->n_replica; i++) {
        cake_buf_cut(&advice, 0);
        cake_advice_late(&all[i], &advice);
        if (advice.len)
            cake_log(CAKE_INFO, NULL, "%s", advice.data);
    }
    cake_buf_cut(&advice, 0);
    give_advice(all, r, &advice);
    cake_log(CAKE_INFO, NULL, "advice: %s", advice.data);
    cake_buf_free(&advice);
    free_figures(all);
}

static void add_roofline(cake_buf *out, const roofline *all)
{
    cake_json_put_real(out, "\"roofline\": {\"flops\": ", all->work.flops);
    cake_json_put_real(out, ", \"bytes\": ", all->work.bytes);
    cake_json_put_real(out, ", \"peak_flops\": ", all->peak_flops > 0 ? all->peak_flops : NAN);
    cake_json_put_real(out, ", \"peak_bandwidth\": ", all->peak_bandwidth > 0 ? all->peak_bandwidth : NAN);
    cake_json_put_real(out, ", \"share\": ", all->share);
    cake_buf_adds(out, "}");
}

/* Both lists have the layers in the order in which waves visit them. */
static void add_own_layers(cake_buf *out, const cake_report *r, int rank)
{
    const char *comma = "";
    cake_buf_adds(out, ", \"layers\": [");
    const cake_plan *plan = plan_of(r, rank);
    const double *layer_s = r->layer_s + (size_t)rank * (size_t)r->n_layer;
    for (int i = 0; i < plan->n_hop; i++) {
        const cake_hop *hop = &plan->hop[i];
        if (hop->rank != rank - plan->first)
            continue;
        cake_buf_addf(out, "%s[%d, %d]", comma, hop->first, hop->first + hop->count - 1);
        comma = ", ";
    }
    comma = "";
    cake_buf_adds(out, "],\n     \"layer_ms\": [");
    for (int i = 0; i < plan->n_hop; i++)
        for (int j = 0; j < plan->hop[i].count && plan->hop[i].rank == rank - plan->first; j++) {
            cake_buf_addf(out, "%s%.5f", comma, ms(r, rank, layer_s[plan->hop[i].first + j]));
            comma = ", ";
        }
    cake_buf_adds(out, "],\n     ");
}

static void add_stage(cake_buf *out, const cake_report *r, const cake_figures *all, int rank)
{
    const cake_report_stage *s = &r->stages[rank];
    const cake_figures *f = &all[replica_of(r, rank)];
    cake_buf waits = {0};
    roofline own = roofline_of_ranks(r, rank, 1);
    cake_buf_addf(out, "    {\"rank\": %d", rank);
    if (r->n_replica > 1)
        cake_buf_addf(out, ", \"replica\": %d", replica_of(r, rank));
    if (r->n_replica > 1 && rank == f->first)
        cake_buf_addf(out, ", \"requests\": %lld", (long long)s->requests);
    cake_json_put_text(out, ", \"host\": ", s->host);
    if (s->gpu.used && s->gpu_layers)
        cake_buf_addf(out, ", \"device\": \"cuda\", \"gpu\": %d, \"gpu_layers\": %d", s->gpu.number,
                      s->gpu_layers);
    else
        cake_buf_adds(out, ", \"device\": \"cpu\"");
    cake_json_put_text(out, ", \"isa\": ", s->isa);
    cake_json_put_text(out, ", \"cpus\": ", s->cpus);
    cake_buf_addf(out, ", \"threads\": %d, \"threads_decode\": %d", s->threads, s->threads_decode);
    add_own_layers(out, r, rank);
    cake_buf_addf(
        out,
        "\"weights_bytes\": %lld, \"read_bytes\": %lld, \"kv_bytes\": %lld, \"buffers_bytes\": %lld,\n     "
        "\"opened_bytes\": %lld, \"grown_bytes\": %lld, \"peak_bytes\": %lld,\n     ",
        (long long)s->weights_bytes, (long long)s->read_bytes, (long long)s->kv_bytes,
        (long long)s->buffers_bytes, (long long)s->opened_bytes, (long long)s->grown_bytes,
        (long long)s->peak_bytes);
    cake_buf_addf(out, "\"load_s\": %.3f, \"compute_s\": %.6f, \"busy_s\": %.6f, \"idle_share\": %.4f, ",
                  s->load_s, s->compute_s, s->busy_s, idle_of(all, r, rank));
    add_waits(all, r, rank, &waits);
    cake_json_put_text(out, "\"waits_for\": ", waits.data);
    double expected = cake_figure_expected(f, rank - f->first);
    cake_json_put_real(out, ", \"expected_s\": ", expected > 0 ? expected : s->compute_s);
    cake_buf_addf(
        out, ",\n     \"embed_ms\": %.5f, \"head_ms\": %.5f, \"sample_ms\": %.5f, \"read_ms\": %.5f,\n     ",
        ms(r, rank, s->root.embed_s), ms(r, rank, s->root.head_s), ms(r, rank, s->root.sample_s),
        ms(r, rank, s->root.read_s));
    cake_buf_addf(out,
                  "\"link\": {\"kind\": \"%s\", \"rtt_us\": %.2f, \"bytes\": %lld, \"wait_s\": %.6f, "
                  "\"move_s\": %.6f},\n     ",
                  s->link[0] ? s->link : "self", 1e6 * s->rtt_s, (long long)s->link_bytes,
                  s->run_s > s->busy_s ? s->run_s - s->busy_s : 0, s->move_s);
    add_roofline(out, &own);
    cake_buf_addf(out, "}%s\n", rank + 1 < r->world->size ? "," : "");
    cake_buf_free(&waits);
}

/* What is needed to run it again. */
static void add_again(cake_buf *out, const cake_report *r)
{
    static const char *const prefix[] = {"OMPI_", "UCX_", "NCCL_", "OMP_", "SLURM_", "CAKE_"};
    cake_buf mpi = {0};
    cake_world_describe(&mpi);
    cake_json_put_text(out, "  \"version\": ", cake_version());
    cake_json_put_text(out, ",\n  \"mpi\": ", mpi.data);
    cake_buf_free(&mpi);
    cake_buf_adds(out, ",\n  \"hosts\": [");
    for (int i = 0; i < r->world->size; i++)
        cake_json_put_text(out, i ? ", " : "", r->stages[i].host);
    cake_buf_adds(out, "],\n  \"command\": [");
    for (int i = 0; i < r->argc; i++)
        cake_json_put_text(out, i ? ", " : "", r->argv[i]);
    cake_buf_adds(out, "],\n  \"settings\": [");
    for (int i = 0; i < r->settings->n; i++) {
        cake_buf line = {0};
        cake_buf_addf(&line, "%s: %s", r->settings->setting[i].name, r->settings->setting[i].value);
        cake_json_put_text(out, i ? ", " : "", line.data);
        cake_buf_free(&line);
    }
    cake_buf_adds(out, "],\n  \"environment\": {");
    const char *comma = "";
    for (char **e = environ; *e; e++)
        for (size_t i = 0; i < sizeof prefix / sizeof *prefix; i++) {
            const char *equals = strchr(*e, '=');
            if (!equals || strncmp(*e, prefix[i], strlen(prefix[i])))
                continue;
            cake_buf_adds(out, comma);
            cake_json_add_text(out, *e, (size_t)(equals - *e));
            cake_json_put_text(out, ": ", equals + 1);
            comma = ", ";
        }
    cake_buf_adds(out, "}\n}\n");
}

static void compose(cake_report *r, cake_buf *out)
{
    const cake_counts *c = &r->counts;
    cake_figures *all = figures_of_all(r);
    cake_buf advice = {0};
    roofline peaks = roofline_of_ranks(r, 0, r->world->size);
    cake_root_stats roots = sum_roots(r);
    double starved = 0;
    for (int i = 0; i < r->n_replica; i++)
        starved += all[i].starved / r->n_replica;
    cake_json_put_text(out, "{\n  \"model\": ", r->model);
    cake_buf_addf(out, ",\n  \"ranks\": %d,\n  \"replicas\": %d,\n", r->world->size, r->n_replica);
    cake_buf_addf(out, "  \"seconds\": {\"load\": %.6f, \"run\": %.6f, \"total\": %.6f},\n", r->load_s,
                  r->run_s, r->total_s);
    cake_buf_addf(out, "  \"requests\": {\"done\": %lld, \"failed\": %lld, \"resumed\": %lld},\n",
                  (long long)(c->done - c->failed), (long long)c->failed, (long long)c->resumed);
    cake_buf_addf(out,
                  "  \"tokens\": {\"prompt\": %lld, \"prompt_shared\": %lld, \"generated\": %lld, "
                  "\"computed\": %lld},\n",
                  (long long)c->prompt, (long long)roots.schedule.shared, (long long)c->generated,
                  (long long)roots.rows);
    cake_buf_addf(
        out, "  \"rate\": {\"prompt_per_s\": %.2f, \"generated_per_s\": %.2f, \"total_per_s\": %.2f},\n",
        rate(c->prompt, r->run_s), rate(c->generated, r->run_s), rate(c->prompt + c->generated, r->run_s));
    cake_buf_addf(out, "  \"waves\": %lld,\n  \"evictions\": %lld,\n  \"states_copied\": %lld,\n",
                  (long long)roots.waves, (long long)roots.schedule.evictions,
                  (long long)roots.schedule.states);
    add_times(out, "ttft_ms", &r->ttft);
    add_times(out, "itl_ms", &r->itl);
    cake_json_put_known(out, "  \"journal\": {\"write_s\": ", r->journal.write);
    cake_json_put_known(out, ", \"sync_s\": ", r->journal.sync);
    cake_json_put_known(out, ", \"finish_s\": ", r->journal.finish);
    cake_buf_adds(out, "},\n");
    add_energy(out, r);
    cake_buf_addf(out, "  \"starved_share\": %.4f,\n", starved);
    give_advice(all, r, &advice);
    cake_json_put_text(out, "  \"advice\": ", advice.data);
    cake_buf_adds(out, ",\n  \"stages\": [\n");
    for (int i = 0; i < r->world->size; i++)
        add_stage(out, r, all, i);
    cake_buf_adds(out, "  ],\n  ");
    add_roofline(out, &peaks);
    cake_buf_adds(out, ",\n");
    add_again(out, r);
    cake_buf_free(&advice);
    free_figures(all);
}

cake_err cake_report_write(cake_report *r, const char *path)
{
    cake_whole whole;
    cake_buf out = {0};
    cake_err err = cake_whole_open("report", path, &whole);
    if (err)
        return err;
    compose(r, &out);
    fwrite(out.data, 1, out.len, whole.file); /* what fails is told by the close */
    cake_buf_free(&out);
    return cake_whole_close(&whole);
}
