/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a cake_report. Out: a file of JSON, docs/formats.md.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/atomic_file.h"
#include "base/version.h"
#include "formats/json.h"
#include "report/internal.h"

extern char **environ;

static void add_times(cake_buf *out, const char *name, cake_latency *t)
{
    cake_buf_addf(out, "  \"%s\": {\"p50\": ", name);
    cake_json_add_real(out, cake_latency_percentile(t, 50));
    cake_buf_adds(out, ", \"p99\": ");
    cake_json_add_real(out, cake_latency_percentile(t, 99));
    cake_buf_adds(out, "},\n");
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
    cake_json_put_known(out, ", \"joules_per_million_tokens\": ", cake_report_million(r, joules));
    cake_buf_adds(out, "},\n");
}

static void add_roofline(cake_buf *out, const cake_roofline_summary *all)
{
    cake_json_put_real(out, "\"roofline\": {\"flops\": ", all->work.flops);
    cake_json_put_real(out, ", \"bytes\": ", all->work.bytes);
    cake_json_put_real(out, ", \"peak_flops\": ", all->peak_flops > 0 ? all->peak_flops : NAN);
    cake_json_put_real(out, ", \"peak_bandwidth\": ", all->peak_bandwidth > 0 ? all->peak_bandwidth : NAN);
    cake_json_put_real(out, ", \"share\": ", all->share);
    cake_buf_adds(out, "}");
}

/* Both lists are in the order in which waves visit the layers. */
static void add_own_layers(cake_buf *out, const cake_report *r, int rank)
{
    const char *comma = "";
    cake_buf_adds(out, ", \"layers\": [");
    const cake_plan *plan = cake_report_plan(r, rank);
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
            cake_buf_addf(out, "%s%.5f", comma, cake_report_ms(r, rank, layer_s[plan->hop[i].first + j]));
            comma = ", ";
        }
    cake_buf_adds(out, "],\n     ");
}

/* Means over visits of waves to layers with experts. */
static void add_experts(cake_buf *out, const cake_expert_use *use)
{
    const double n = (double)use->visits;
    if (!use->visits)
        return;
    cake_buf_addf(out,
                  "\"experts\": {\"distinct\": %.2f, \"rows\": [%.3f, %.3f, %.3f], \"imbalance\": %.3f, ",
                  use->distinct / n, use->min_rows / n, use->mean_rows / n, use->max_rows / n,
                  use->mean_rows > 0 ? use->max_rows / use->mean_rows : 0);
    cake_buf_addf(out, "\"bytes_per_row\": %.0f, \"expected_bytes_per_row\": %.0f},\n     ",
                  use->weight_bytes / use->rows, use->expected_bytes / use->rows);
}

static void add_stage(cake_buf *out, const cake_report *r, const cake_run_metrics *all, int rank)
{
    const cake_report_stage *s = &r->stages[rank];
    const cake_run_metrics *f = &all[cake_report_replica(r, rank)];
    cake_buf waits = {0};
    cake_roofline_summary own = cake_report_roofline(r, rank, 1);
    cake_buf_addf(out, "    {\"rank\": %d", rank);
    if (r->n_replica > 1)
        cake_buf_addf(out, ", \"replica\": %d", cake_report_replica(r, rank));
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
    if (s->wave_read_bytes) {
        cake_buf_addf(out, "\"weights_read\": {\"max_wave_bytes\": %lld, \"bytes\": %lld, ",
                      (long long)s->wave_read_bytes, (long long)s->stream_bytes);
        cake_buf_addf(out, "\"active_s\": %.6f, \"wait_s\": %.6f},\n     ", s->stream_s, s->stream_wait_s);
    }
    add_experts(out, &s->experts);
    cake_buf_addf(out, "\"load_s\": %.3f, \"compute_s\": %.6f, \"busy_s\": %.6f, \"idle_share\": %.4f, ",
                  s->load_s, s->compute_s, s->busy_s, cake_report_idle(all, r, rank));
    cake_report_waits(all, r, rank, &waits);
    cake_json_put_text(out, "\"waits_for\": ", waits.data);
    double expected = cake_rank_metrics_expected(f, rank - f->first);
    cake_json_put_real(out, ", \"expected_s\": ", expected > 0 ? expected : s->compute_s);
    cake_buf_addf(
        out, ",\n     \"embed_ms\": %.5f, \"head_ms\": %.5f, \"sample_ms\": %.5f, \"read_ms\": %.5f,\n     ",
        cake_report_ms(r, rank, s->root.embed_s), cake_report_ms(r, rank, s->root.head_s),
        cake_report_ms(r, rank, s->root.sample_s), cake_report_ms(r, rank, s->root.read_s));
    cake_buf_addf(out,
                  "\"link\": {\"kind\": \"%s\", \"rtt_us\": %.2f, \"bytes\": %lld, \"wait_s\": %.6f, "
                  "\"move_s\": %.6f},\n     ",
                  s->link[0] ? s->link : "self", 1e6 * s->rtt_s, (long long)s->link_bytes,
                  s->run_s > s->busy_s ? s->run_s - s->busy_s : 0, s->move_s);
    add_roofline(out, &own);
    cake_buf_addf(out, "}%s\n", rank + 1 < r->world->size ? "," : "");
    cake_buf_free(&waits);
}

/* All that is needed to repeat the run. */
static void add_environment(cake_buf *out, const cake_report *r)
{
    static const char *const prefix[] = {"OMPI_", "UCX_", "NCCL_", "OMP_", "SLURM_", "CAKE_"};
    cake_buf mpi = {0};
    cake_comm_describe(&mpi);
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
        const char *value = r->settings->setting[i].value;
        cake_buf_addf(&line, "%s: %s", r->settings->setting[i].name, value ? value : "null");
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

/* Only of runs that score texts. */
static void add_scores(cake_buf *out, const cake_scored *s)
{
    if (s->tokens && s->bytes)
        cake_buf_addf(out,
                      "  \"scores\": {\"texts\": %lld, \"tokens\": %lld, \"bytes\": %lld, \"nats\": %.6f, "
                      "\"bits_per_byte\": %.6f, \"perplexity\": %.6f},\n",
                      (long long)s->texts, (long long)s->tokens, (long long)s->bytes, -s->logprob,
                      cake_report_bits_per_byte(s), cake_report_perplexity(s));
}

static void compose(cake_report *r, cake_buf *out)
{
    const cake_counts *c = &r->counts;
    cake_run_metrics *all = cake_report_metrics(r);
    cake_buf advice = {0};
    cake_roofline_summary peaks = cake_report_roofline(r, 0, r->world->size);
    cake_engine_stats engines = cake_report_engines(r);
    double bubble = 0;
    for (int i = 0; i < r->n_replica; i++)
        bubble += all[i].bubble / r->n_replica;
    cake_json_put_text(out, "{\n  \"model\": ", r->model);
    cake_buf_addf(out, ",\n  \"ranks\": %d,\n  \"replicas\": %d,\n", r->world->size, r->n_replica);
    cake_buf_addf(out, "  \"seconds\": {\"load\": %.6f, \"run\": %.6f, \"total\": %.6f},\n", r->load_s,
                  r->run_s, r->total_s);
    cake_buf_addf(out, "  \"requests\": {\"done\": %lld, \"failed\": %lld, \"resumed\": %lld},\n",
                  (long long)(c->done - c->failed), (long long)c->failed, (long long)c->resumed);
    cake_buf_addf(out,
                  "  \"tokens\": {\"prompt\": %lld, \"prompt_shared\": %lld, \"generated\": %lld, "
                  "\"drafted\": %lld, \"accepted\": %lld, \"per_pass\": %.3f, \"computed\": %lld},\n",
                  (long long)c->prompt, (long long)engines.schedule.shared, (long long)c->generated,
                  (long long)engines.speculation.drafted, (long long)engines.speculation.accepted,
                  cake_report_per_pass(r), (long long)engines.rows);
    add_scores(out, &c->scored);
    cake_buf_addf(out,
                  "  \"rate\": {\"prompt_per_s\": %.2f, \"generated_per_s\": %.2f, \"total_per_s\": %.2f},\n",
                  cake_report_rate(c->prompt, r->run_s), cake_report_rate(c->generated, r->run_s),
                  cake_report_rate(c->prompt + c->generated, r->run_s));
    cake_buf_addf(out, "  \"waves\": %lld,\n  \"evictions\": %lld,\n  \"states_copied\": %lld,\n",
                  (long long)engines.waves, (long long)engines.schedule.evictions,
                  (long long)engines.schedule.states);
    add_times(out, "ttft_ms", &r->ttft);
    add_times(out, "itl_ms", &r->itl);
    cake_json_put_known(out, "  \"journal\": {\"write_s\": ", r->journal.write);
    cake_json_put_known(out, ", \"sync_s\": ", r->journal.sync);
    cake_json_put_known(out, ", \"finish_s\": ", r->journal.finish);
    cake_buf_adds(out, "},\n");
    add_energy(out, r);
    cake_buf_addf(out, "  \"starved_share\": %.4f,\n", bubble);
    cake_report_advise(all, r, &advice);
    cake_json_put_name(out, "  \"advice\": ", advice.len ? advice.data : NULL);
    cake_buf_adds(out, ",\n  \"stages\": [\n");
    for (int i = 0; i < r->world->size; i++)
        add_stage(out, r, all, i);
    cake_buf_adds(out, "  ],\n  ");
    add_roofline(out, &peaks);
    cake_buf_adds(out, ",\n");
    add_environment(out, r);
    cake_buf_free(&advice);
    cake_report_metrics_free(all);
}

cake_err cake_report_write(cake_report *r, const char *path)
{
    cake_atomic_file whole;
    cake_buf out = {0};
    cake_err err = cake_atomic_file_open("report", path, &whole);
    if (err)
        return err;
    compose(r, &out);
    fwrite(out.data, 1, out.len, whole.file); /* errors are reported by the close */
    cake_buf_free(&out);
    return cake_atomic_file_close(&whole);
}
