/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a plan, the ranks' reports, estimates. Out: the text or the JSON that `plan` prints. Pure.
 * Invariant: numbers that depend on rates are left out, or null, where a rank is on a GPU, since rates of
 * GPUs are not known.
 */
#include "run/plan_output.h"
#include "base/size.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/speculation.h"
#include "formats/json.h"
#include "placement/machine.h"
#include "planner/offload.h"
#include "report/report.h"
#include "slice/slice.h"

static int replica_of(const cake_plan_output *s, int rank)
{
    return rank / s->rank->replica.size;
}

static double idle_share(const cake_plan_output *s, int rank)
{
    const cake_replica_estimate *estimate = &s->replicas[replica_of(s, rank)];
    return estimate->seconds > 0 ? 1 - s->busy[rank] / estimate->seconds : 1; /* it gets no request */
}

static double wave_seconds(const cake_plan_output *s, int rank)
{
    const cake_replica_estimate *estimate = &s->replicas[replica_of(s, rank)];
    return estimate->waves ? s->busy[rank] / (double)estimate->waves : 0;
}

static int count_nodes(const cake_plan_output *s)
{
    int n = 0;
    for (int i = 0; i < s->world->size; i++) {
        int before = 0;
        while (before < i && strcmp(s->ranks[before].host, s->ranks[i].host))
            before++;
        n += before == i;
    }
    return n;
}

typedef struct time_str {
    char s[32];
} time_str;

/* "1.5 s", "12 min", "3.4 h": time_text(seconds).s lives until the end of the full expression. */
static time_str time_text(double seconds)
{
    time_str out;
    if (seconds < 100)
        snprintf(out.s, sizeof out.s, "%.3g s", seconds);
    else if (seconds < 100 * 60)
        snprintf(out.s, sizeof out.s, "%.3g min", seconds / 60);
    else
        snprintf(out.s, sizeof out.s, "%.4g h", seconds / 3600);
    return out;
}

static size_t longest_host(const cake_plan_output *s)
{
    size_t longest = 4;
    for (int i = 0; i < s->world->size; i++)
        longest = strlen(s->ranks[i].host) > longest ? strlen(s->ranks[i].host) : longest;
    return longest;
}

/* A rank's line after its number and host. */
static void add_row(const cake_plan_output *s, int rank, cake_buf *out)
{
    const cake_report_stage *r = &s->ranks[rank];
    const cake_plan *plan = &s->plans[replica_of(s, rank)];
    double ms = 1e3 * wave_seconds(s, rank);
    cake_buf layers = {0}, threads = {0};
    if (r->gpu.used)
        cake_buf_addf(out, " %3d", r->gpu.number);
    else if (s->rank->cluster.gpus)
        cake_buf_adds(out, "   -");
    cake_plan_layers(plan, rank - plan->first, &layers);
    cake_report_threads(r, &threads);
    cake_buf_addf(out, " %-14s %7s  %-10s %10s %10s %10s", r->cpus, threads.data, layers.data,
                  cake_size_text(r->weights_bytes).s, cake_size_text(r->kv_bytes).s,
                  cake_size_text(r->buffers_bytes).s);
    if (s->rank->cluster.gpus)
        cake_buf_adds(out, "          -      -\n");
    else
        cake_buf_addf(out, " %10.*f %4.0f %%\n", ms < 10 ? 2 : ms < 100, ms, 100 * idle_share(s, rank));
    cake_buf_free(&layers);
    cake_buf_free(&threads);
}

/* Whether the lines of a replica (not the first) repeat those of the one before it. */
static bool repeats(const cake_plan_output *s, int replica)
{
    int size = s->rank->replica.size;
    bool same = true;
    for (int i = replica * size; same && i < (replica + 1) * size; i++) {
        cake_buf one = {0}, other = {0};
        add_row(s, i, &one);
        add_row(s, i - size, &other);
        same = !strcmp(one.data, other.data);
        cake_buf_free(&one);
        cake_buf_free(&other);
    }
    return same;
}

/* With very many ranks, repeated replicas are only counted. */
static void add_table(const cake_plan_output *s, cake_buf *out)
{
    const int many = 64;
    int wide = (int)longest_host(s), size = s->rank->replica.size, alike = 0;
    cake_buf_addf(out, "%-5s %-*s%s %-14s %7s  %-10s %10s %10s %10s %10s %6s\n", "rank", wide, "host",
                  s->rank->cluster.gpus ? " GPU" : "", "cpus", "threads", "layers", "weights", "KV",
                  "buffers", "ms a wave", "idle");
    bool same = false;
    for (int r = 0; r < s->rank->planning.n_replica; r++) {
        for (int i = r * size; i < (r + 1) * size && !same; i++) {
            cake_buf_addf(out, "%-5d %-*s", i, wide, s->ranks[i].host);
            add_row(s, i, out);
        }
        alike = same ? alike + 1 : 0;
        same = s->world->size > many && r + 1 < s->rank->planning.n_replica && repeats(s, r + 1);
        if (alike && !same)
            cake_buf_addf(out, "%d to %d: the same, %d time%s more\n", (r + 1 - alike) * size,
                          (r + 1) * size - 1, alike, alike == 1 ? "" : "s");
    }
}

/* The number of replicas, and their shares of the requests if they differ. */
static void add_replicas(const cake_plan_output *s, cake_buf *out)
{
    int n = s->rank->planning.n_replica, size = s->rank->replica.size;
    bool unequal = false;
    if (n == 1)
        return;
    cake_buf_addf(out, "replicas  %d, of %d rank%s each; waves, pages and states are per replica", n, size,
                  size == 1 ? "" : "s");
    for (int r = 1; r < n; r++)
        unequal = unequal || s->replicas[r].share != s->replicas[0].share;
    for (int r = 0; r < n && unequal; r++)
        cake_buf_addf(out, "%s%.0f%%", r ? ", " : "; shares of the requests: ", 100 * s->replicas[r].share);
    cake_buf_addc(out, '\n');
}

/* Size of the smallest GPU share. */
static int64_t min_gpu(const cake_plan_output *s)
{
    int64_t min_size = INT64_MAX;
    for (int i = 0; i < s->world->size; i++)
        if (s->ranks[i].gpu.used && s->ranks[i].gpu.size < min_size)
            min_size = s->ranks[i].gpu.size;
    return min_size;
}

/* Tokens of a sequence halfway through its answer that are not those of a prefix shared with others. */
static int usual_length(const cake_workload *w)
{
    double length = w->n ? (w->computed + w->max_generated / 2) / (double)w->n : 1;
    return length < 1 ? 1 : length < INT32_MAX / 2 ? (int)length : INT32_MAX / 2;
}

/* Sequences of that length whose pages fit at the same time. */
static int64_t held_seqs(const cake_plan_output *s)
{
    const cake_schedule_shape *shape = &s->rank->planning.shape;
    int64_t held = (int64_t)shape->n_lane * shape->lane_seqs;
    for (int group = 0; group < shape->n_kv_group; group++) {
        int64_t n = shape->n_page[group] /
                    cake_pages_held(shape->window[group], usual_length(s->workload), CAKE_PAGE);
        held = n < held ? n : held;
    }
    return held > 0 ? held : 1;
}

/* Rows of a wave of generated tokens. */
static int generated_rows(const cake_plan_output *s)
{
    const cake_schedule_shape *shape = &s->rank->planning.shape;
    int64_t n = (held_seqs(s) + shape->n_lane - 1) / shape->n_lane;
    return n < shape->lane_seqs ? (int)n : shape->lane_seqs;
}

static const char *isa_of(const cake_rank *me)
{
    return me->isa.len ? me->isa.data : cake_offload_first(&me->input)->name;
}

static void add_waves(const cake_plan_output *s, cake_buf *out)
{
    const cake_rank *me = s->rank;
    const cake_schedule_shape *shape = &me->planning.shape;
    double min_flops = INFINITY, max_flops = 0;
    cake_buf_addf(
        out, "\nwaves     %d of up to %d token%s and %d sequence%s each; instruction set %s, %d rank%s\n",
        shape->n_lane, shape->max_row, cake_plural(shape->max_row), shape->lane_seqs,
        cake_plural(shape->lane_seqs), isa_of(me), s->world->size, s->world->size == 1 ? "" : "s");
    add_replicas(s, out);
    for (int group = 0; group < shape->n_kv_group; group++) {
        cake_buf_addf(out, "KV        %d page%s of %d tokens", shape->n_page[group],
                      cake_plural(shape->n_page[group]), CAKE_PAGE);
        if (shape->window[group])
            cake_buf_addf(out, " for layers that see %d tokens", shape->window[group]);
        cake_buf_addc(out, '\n');
    }
    if (held_seqs(s) < (int64_t)shape->n_lane * shape->lane_seqs)
        cake_buf_addf(out, "          enough for about %lld sequence%s of %d token%s at a time\n",
                      (long long)held_seqs(s), held_seqs(s) == 1 ? "" : "s", usual_length(s->workload),
                      cake_plural(usual_length(s->workload)));
    const cake_config *config = cake_model_config(me->input.model);
    cake_slice_shape whole = {.count = config->n_layer};
    if (shape->states)
        cake_buf_addf(out,
                      "states    %d, one a sequence, "
                      "%d for shared prefixes, and %d for drafts, each of %s in all layers together\n",
                      shape->n_lane * shape->lane_seqs, shape->n_saved, shape->n_spare,
                      cake_size_text((int64_t)cake_slice_state_bytes(config, &whole)).s);
    if (me->cluster.gpus) {
        cake_buf_addf(out,
                      "GPUs      of %s a rank, for weights, KV and buffers; "
                      "rates of GPUs are not known, so no run time is predicted\n",
                      cake_size_text(min_gpu(s)).s);
        return;
    }
    for (int i = 0; i < s->world->size; i++) {
        min_flops = fmin(min_flops, me->cluster.rate[i].flops);
        max_flops = fmax(max_flops, me->cluster.rate[i].flops);
    }
    cake_buf_addf(out, "rates     %.4g", 1e-9 * min_flops);
    if (max_flops > min_flops)
        cake_buf_addf(out, " to %.4g", 1e-9 * max_flops);
    cake_buf_addf(out, " GFLOP/s of products and %.3g GB/s of reading a rank\n",
                  1e-9 * me->cluster.rate[0].bytes);
}

/* The rank that reads most for a wave. */
static const cake_report_stage *most_reading(const cake_plan_output *s)
{
    const cake_report_stage *most = &s->ranks[0];
    for (int i = 1; i < s->world->size; i++)
        most = s->ranks[i].wave_read_bytes > most->wave_read_bytes ? &s->ranks[i] : most;
    return most;
}

/* Whether it is known how long weights that are not held take to read. */
static bool knows_reading(const cake_plan_output *s)
{
    return s->rank->input.pack_rate > 0 && s->rank->cluster.rate[0].flops > 0 && !s->rank->cluster.gpus;
}

/* Seconds of a wave with all sequences that the cache holds, or of a full one of a prompt. */
static double full_wave(const cake_plan_output *s, bool prompt)
{
    const cake_schedule_shape *shape = &s->rank->planning.shape;
    return cake_estimate_wave(&s->rank->planning, &s->plans[0], prompt ? shape->chunk : generated_rows(s),
                              prompt);
}

/* Seconds of a pass of one answer with so many drafts through all ranks. */
static double draft_wave(const cake_plan_output *s, int n_draft)
{
    return cake_estimate_pass(&s->rank->planning, &s->plans[0], 1 + n_draft);
}

/* What drafts cost. */
static void add_drafts(const cake_plan_output *s, cake_buf *out)
{
    const int most = s->rank->planning.shape.n_draft;
    if (!most)
        return;
    cake_buf_addf(out, "drafts    up to %d tokens an answer and %d a wave", CAKE_MAX_DRAFT, most);
    if (!s->rank->cluster.gpus)
        cake_buf_addf(out, "; a pass of one answer takes %.3g ms, with %d drafts %.3g ms",
                      1e3 * draft_wave(s, 0), CAKE_MAX_DRAFT, 1e3 * draft_wave(s, CAKE_MAX_DRAFT));
    cake_buf_addc(out, '\n');
}

/* What waves read of weights that are not held. */
static void add_reading(const cake_plan_output *s, cake_buf *out)
{
    const cake_report_stage *most = most_reading(s);
    const cake_plan_input *in = &s->rank->input;
    const cake_schedule_shape *shape = &s->rank->planning.shape;
    if (!most->wave_read_bytes)
        return;
    cake_buf_addf(out, "reading   up to %s of weights a rank and wave",
                  cake_size_text(most->wave_read_bytes).s);
    if (knows_reading(s)) {
        double seconds[] = {full_wave(s, false), full_wave(s, true)}, n = s->rank->planning.n_replica;
        const int rows = generated_rows(s);
        cake_buf_addf(
            out, ", at %.3g GB/s from %s\n",
            1e-9 * (in->read_rate > 0 && in->read_rate < in->pack_rate ? in->read_rate : in->pack_rate),
            in->read_rate > 0 ? "disk" : "the page cache");
        cake_buf_addf(
            out,
            "          a wave of %d generated token%s takes %s: at most %.4g tokens/s; one of %d of a "
            "prompt %s: %.4g tokens/s",
            rows, cake_plural(rows), time_text(seconds[0]).s, n * rows / seconds[0], shape->chunk,
            time_text(seconds[1]).s, n * shape->chunk / seconds[1]);
    }
    cake_buf_addc(out, '\n');
}

static void add_counted(const cake_plan_output *s, cake_buf *out)
{
    const cake_counted *c = s->counted;
    char part[CAKE_SHARD_TEXT];
    cake_buf_addf(out, "requests  %lld", (long long)c->requests);
    if (cake_shard_text(&c->shard, part))
        cake_buf_addf(out, " of shard %s", part);
    cake_buf_addf(out, ", of which %lld would fail", (long long)c->failed);
    if (c->too_long)
        cake_buf_addf(out, ", %lld of them because they do not fit the context of %d", (long long)c->too_long,
                      s->rank->input.context);
    cake_buf_addc(out, '\n');
    if (c->n)
        cake_buf_addf(out, "tokens    of a prompt: min %lld, median %lld, p99 %lld, max %lld; total %lld\n",
                      (long long)c->min, (long long)c->median, (long long)c->p99, (long long)c->max,
                      (long long)c->total);
    if (c->shared)
        cake_buf_addf(
            out,
            "          %lld of them (%.1f %%) are in prefixes shared with other prompts, computed once\n",
            (long long)c->shared, 100.0 * (double)c->shared / (double)c->total);
    if (c->outgrow)
        cake_buf_addf(
            out,
            "          %lld may alone outgrow the KV cache, if their answers reach their maximum length\n",
            (long long)c->outgrow);
}

/* Appends `before` and the node-hours, unless they are negligible. */
static void add_node_hours(double hours, const char *before, cake_buf *out)
{
    if (hours >= 0.01)
        cake_buf_addf(out, "%s%.*f node-hours", before, hours < 10 ? 2 : hours < 100 ? 1 : 0, hours);
}

static void add_time(const cake_plan_output *s, cake_buf *out)
{
    const cake_estimate *a = &s->shortest, *b = &s->longest;
    double hours = count_nodes(s) / 3600.0;
    if (a->generated >= b->generated) {
        cake_buf_addf(out, "time      %s predicted, without loading", time_text(b->seconds).s);
        if (b->generated > 0)
            cake_buf_addf(out, ", for %.0f generated tokens", b->generated);
        add_node_hours(b->seconds * hours, ": ", out);
        cake_buf_addc(out, '\n');
        return;
    }
    double answers = (double)s->workload->n, each = 100 * answers / (b->generated - a->generated);
    cake_buf_addf(out,
                  "time      %s to %s predicted, without loading: "
                  "the first with answers of minimum length (%.0f tokens",
                  time_text(a->seconds).s, time_text(b->seconds).s, a->generated);
    add_node_hours(a->seconds * hours, ", ", out);
    cake_buf_addf(out, "), the second with answers of maximum length (%.0f tokens", b->generated);
    add_node_hours(b->seconds * hours, ", ", out);
    cake_buf_addf(out, "); 100 tokens more in each answer take about %s\n",
                  time_text((b->seconds - a->seconds) * each).s);
}

void cake_plan_output_text(const cake_plan_output *s, cake_buf *out)
{
    add_table(s, out);
    add_waves(s, out);
    add_drafts(s, out);
    add_reading(s, out);
    if (!s->counted)
        return;
    add_counted(s, out);
    if (s->workload->n && !s->rank->cluster.gpus)
        add_time(s, out);
}

/* A number that depends on rates; null with GPUs. */
static void put_rate(const cake_plan_output *s, cake_buf *out, const char *before, double value)
{
    if (s->rank->cluster.gpus)
        cake_buf_addf(out, "%snull", before);
    else
        cake_json_put_real(out, before, value);
}

static void add_rank(const cake_plan_output *s, int rank, cake_buf *out)
{
    const cake_report_stage *r = &s->ranks[rank];
    const cake_plan *plan = &s->plans[replica_of(s, rank)];
    const char *comma = "";
    cake_buf_addf(out, "    {\"rank\": %d", rank);
    if (s->rank->planning.n_replica > 1)
        cake_buf_addf(out, ", \"replica\": %d", replica_of(s, rank));
    cake_json_put_text(out, ", \"host\": ", r->host);
    cake_buf_addf(
        out, r->gpu.used ? ", \"device\": \"cuda\", \"gpu\": %d" : ", \"device\": \"cpu\", \"gpu\": null",
        r->gpu.number);
    cake_buf_addf(out,
                  r->gpu.used ? ", \"gpu_bytes\": %lld, \"gpu_layers\": %d"
                              : ", \"gpu_bytes\": null, \"gpu_layers\": null",
                  (long long)r->gpu.size, r->gpu_layers);
    cake_json_put_text(out, ", \"cpus\": ", r->cpus);
    cake_buf_addf(out, ", \"threads\": %d, \"threads_decode\": %d, \"layers\": [", r->threads,
                  r->threads_decode);
    for (int i = 0; i < plan->n_hop; i++) {
        const cake_hop *hop = &plan->hop[i];
        if (plan->first + hop->rank != rank)
            continue;
        cake_buf_addf(out, "%s[%d, %d]", comma, hop->first, hop->first + hop->count - 1);
        comma = ", ";
    }
    cake_buf_addf(out, "],\n     \"weights_bytes\": %lld, \"kv_bytes\": %lld, \"buffers_bytes\": %lld",
                  (long long)r->weights_bytes, (long long)r->kv_bytes, (long long)r->buffers_bytes);
    if (r->min_weights_bytes)
        cake_buf_addf(out,
                      ",\n     \"weights_read\": {\"max_wave_bytes\": %lld, \"min_weights_bytes\": %lld}",
                      (long long)r->wave_read_bytes, (long long)r->min_weights_bytes);
    put_rate(s, out, ", \"flops\": ", s->rank->cluster.rate[rank].flops);
    put_rate(s, out, ", \"bandwidth\": ", s->rank->cluster.rate[rank].bytes);
    put_rate(s, out, ",\n     \"wave_s\": ", wave_seconds(s, rank));
    put_rate(s, out, ", \"idle_share\": ", idle_share(s, rank));
    cake_buf_addf(out, "}%s\n", rank + 1 < s->world->size ? "," : "");
}

static void add_estimate(const cake_plan_output *s, const char *name, const cake_estimate *e, cake_buf *out)
{
    cake_buf_addf(out, "\"%s\": {\"generated\": %.0f", name, e->generated);
    cake_json_put_real(out, ", \"seconds\": ", e->seconds);
    cake_json_put_real(out, ", \"node_hours\": ", e->seconds * count_nodes(s) / 3600);
    cake_buf_adds(out, "}");
}

static void add_input(const cake_plan_output *s, cake_buf *out)
{
    const cake_counted *c = s->counted;
    char part[CAKE_SHARD_TEXT];
    cake_json_put_name(out, ",\n  \"shard\": ", cake_shard_text(&c->shard, part));
    cake_buf_addf(out,
                  ",\n  \"requests\": {\"total\": %lld, \"failing\": %lld, \"beyond_context\": %lld, "
                  "\"beyond_kv\": %lld}",
                  (long long)c->requests, (long long)c->failed, (long long)c->too_long,
                  (long long)c->outgrow);
    cake_buf_addf(
        out,
        ",\n  \"tokens\": {\"min\": %lld, \"median\": %lld, \"p99\": %lld, \"max\": %lld, \"total\": "
        "%lld, \"shared\": %lld}",
        (long long)c->min, (long long)c->median, (long long)c->p99, (long long)c->max, (long long)c->total,
        (long long)c->shared);
    if (s->rank->cluster.gpus) {
        cake_buf_adds(out, ",\n  \"prediction\": null");
        return;
    }
    cake_buf_adds(out, ",\n  \"prediction\": {");
    add_estimate(s, "least", &s->shortest, out);
    cake_buf_adds(out, ", ");
    add_estimate(s, "most", &s->longest, out);
    cake_buf_adds(out, "}");
}

static void add_reading_json(const cake_plan_output *s, cake_buf *out)
{
    const cake_report_stage *most = most_reading(s);
    const cake_plan_input *in = &s->rank->input;
    if (!most->wave_read_bytes)
        return;
    cake_buf_addf(out, ",\n  \"reading\": {\"wave_bytes\": %lld", (long long)most->wave_read_bytes);
    cake_json_put_real(out, ", \"disk\": ", in->read_rate > 0 ? in->read_rate : NAN);
    cake_json_put_real(out, ", \"cached\": ", in->pack_rate > 0 ? in->pack_rate : NAN);
    cake_buf_addf(out, ", \"generated_wave_tokens\": %d", generated_rows(s));
    cake_json_put_real(out, ", \"generated_wave_s\": ", knows_reading(s) ? full_wave(s, false) : NAN);
    cake_json_put_real(out, ", \"prompt_wave_s\": ", knows_reading(s) ? full_wave(s, true) : NAN);
    cake_buf_adds(out, "}");
}

static void add_drafts_json(const cake_plan_output *s, cake_buf *out)
{
    const bool known = !s->rank->cluster.gpus;
    if (!s->rank->planning.shape.n_draft)
        return;
    cake_buf_addf(out, ",\n  \"drafts\": {\"answer\": %d, \"wave\": %d", CAKE_MAX_DRAFT,
                  s->rank->planning.shape.n_draft);
    cake_json_put_real(out, ", \"wave_s\": ", known ? draft_wave(s, 0) : NAN);
    cake_json_put_real(out, ", \"drafted_wave_s\": ", known ? draft_wave(s, CAKE_MAX_DRAFT) : NAN);
    cake_buf_adds(out, "}");
}

void cake_plan_output_json(const cake_plan_output *s, cake_buf *out)
{
    const cake_schedule_shape *shape = &s->rank->planning.shape;
    cake_buf_addf(out, "{\n  \"ranks\": [\n");
    for (int i = 0; i < s->world->size; i++)
        add_rank(s, i, out);
    cake_buf_addf(out, "  ],\n  \"replicas\": %d, \"shares\": [", s->rank->planning.n_replica);
    for (int r = 0; r < s->rank->planning.n_replica; r++)
        cake_json_put_real(out, r ? ", " : "", s->replicas[r].share);
    cake_buf_addf(out, "], \"nodes\": %d", count_nodes(s));
    cake_json_put_text(out, ", \"isa\": ", isa_of(s->rank));
    cake_buf_addf(out, ", \"context\": %d,\n", s->rank->input.context);
    cake_buf_addf(out, "  \"waves\": {\"lanes\": %d, \"tokens\": %d, \"sequences\": %d},\n  \"kv\": [",
                  shape->n_lane, shape->max_row, shape->lane_seqs);
    for (int group = 0; group < shape->n_kv_group; group++)
        cake_buf_addf(out, "%s{\"window\": %d, \"pages\": %d, \"page_tokens\": %d}", group ? ", " : "",
                      shape->window[group], shape->n_page[group], CAKE_PAGE);
    cake_buf_adds(out, "]");
    add_drafts_json(s, out);
    add_reading_json(s, out);
    if (s->counted)
        add_input(s, out);
    cake_buf_adds(out, "\n}\n");
}
