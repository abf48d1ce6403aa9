/* SPDX-License-Identifier: Apache-2.0 */
#include "run/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/log.h"
#include "base/version.h"

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
    cake_buf_addf(out, "  \"%s\": {", name);
    if (t->n)
        cake_buf_addf(out, "\"p50\": %.3f, \"p99\": %.3f", (double)t->value[t->n / 2],
                      (double)t->value[t->n * 99 / 100]);
    cake_buf_adds(out, "},\n");
}

static double share_idle(const cake_report_stage *s)
{
    return s->run_s > 0 && s->busy_s < s->run_s ? 1 - s->busy_s / s->run_s : 0;
}

static double rate(int64_t n, double seconds)
{
    return seconds > 0 ? (double)n / seconds : 0;
}

void cake_report_say(const cake_report *r)
{
    const cake_counts *c = &r->counts;
    cake_log(
        CAKE_INFO, NULL,
        "%lld request%s (%lld failed), %lld prompt and %lld generated tokens in %.2f s: %.1f + %.1f tokens/s",
        (long long)c->done, c->done == 1 ? "" : "s", (long long)c->failed, (long long)c->prompt,
        (long long)c->generated, r->run_s, rate(c->prompt, r->run_s), rate(c->generated, r->run_s));
    for (int i = 0; i < r->plan->n_hop; i++) {
        const cake_hop *hop = &r->plan->hop[i];
        const cake_report_stage *s = &r->stages[hop->rank];
        cake_log(CAKE_INFO, NULL,
                 "rank %d on %s: layers %d-%d, %s, %d thread%s, %.1f MB read, compute %.2f s, idle %.0f %%",
                 hop->rank, s->host, hop->first, hop->first + hop->count - 1, s->isa, s->threads,
                 s->threads == 1 ? "" : "s", 1e-6 * (double)s->read_bytes, s->compute_s, 100 * share_idle(s));
    }
}

static void add_stage(cake_buf *out, const cake_report *r, int i)
{
    const cake_hop *hop = &r->plan->hop[i];
    const cake_report_stage *s = &r->stages[hop->rank];
    cake_buf_addf(out, "    {\"rank\": %d, \"host\": ", hop->rank);
    cake_json_add_text(out, s->host, strlen(s->host));
    cake_buf_adds(out, ", \"device\": \"cpu\", \"isa\": ");
    cake_json_add_text(out, s->isa, strlen(s->isa));
    cake_buf_adds(out, ", \"cpus\": ");
    cake_json_add_text(out, s->cpus, strlen(s->cpus));
    cake_buf_addf(out, ", \"threads\": %d, \"layers\": [[%d, %d]],\n", s->threads, hop->first,
                  hop->first + hop->count - 1);
    cake_buf_addf(out,
                  "     \"weights_bytes\": %lld, \"read_bytes\": %lld, \"kv_bytes\": %lld, \"peak_bytes\": "
                  "%lld, \"load_s\": %.3f,\n",
                  (long long)s->weights_bytes, (long long)s->read_bytes, (long long)s->kv_bytes,
                  (long long)s->peak_bytes, s->load_s);
    cake_buf_addf(out, "     \"compute_s\": %.3f, \"idle_share\": %.4f, \"layer_ms\": %.4f, ", s->compute_s,
                  share_idle(s), r->waves ? 1e3 * s->compute_s / (double)r->waves / hop->count : 0.0);
    if (hop->rank == 0)
        cake_buf_addf(out, "\"embed_ms\": %.4f, \"head_ms\": %.4f, \"sample_ms\": %.4f, ",
                      r->waves ? 1e3 * s->embed_s / (double)r->waves : 0.0,
                      r->waves ? 1e3 * s->head_s / (double)r->waves : 0.0,
                      r->waves ? 1e3 * s->sample_s / (double)r->waves : 0.0);
    cake_buf_addf(out, "\"link\": {\"kind\": \"%s\", \"bytes\": %lld}}%s\n",
                  r->world->size > 1 ? "mpi" : "self", (long long)s->link_bytes,
                  i + 1 < r->plan->n_hop ? "," : "");
}

static void add_again(cake_buf *out, const cake_report *r)
{
    static const char *const prefix[] = {"OMPI_", "UCX_", "NCCL_", "OMP_", "SLURM_", "CAKE_"};
    cake_buf_addf(out, "  \"version\": \"%s\",\n  \"command\": [", cake_version());
    for (int i = 0; i < r->argc; i++) {
        cake_buf_adds(out, i ? ", " : "");
        cake_json_add_text(out, r->argv[i], strlen(r->argv[i]));
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
            cake_buf_adds(out, ": ");
            cake_json_add_text(out, equals + 1, strlen(equals + 1));
            comma = ", ";
        }
    cake_buf_adds(out, "}\n}\n");
}

static void compose(cake_report *r, cake_buf *out)
{
    const cake_counts *c = &r->counts;
    cake_buf_adds(out, "{\n  \"model\": ");
    cake_json_add_text(out, r->model, strlen(r->model));
    cake_buf_addf(out, ",\n  \"ranks\": %d,\n", r->world->size);
    cake_buf_addf(out, "  \"seconds\": {\"load\": %.3f, \"run\": %.3f, \"total\": %.3f},\n", r->load_s,
                  r->run_s, r->total_s);
    cake_buf_addf(out, "  \"requests\": {\"done\": %lld, \"failed\": %lld, \"resumed\": 0},\n",
                  (long long)(c->done - c->failed), (long long)c->failed);
    cake_buf_addf(
        out,
        "  \"tokens\": {\"prompt\": %lld, \"prompt_shared\": 0, \"generated\": %lld, \"computed\": %lld},\n",
        (long long)c->prompt, (long long)c->generated, (long long)r->rows);
    cake_buf_addf(
        out, "  \"rate\": {\"prompt_per_s\": %.2f, \"generated_per_s\": %.2f, \"total_per_s\": %.2f},\n",
        rate(c->prompt, r->run_s), rate(c->generated, r->run_s), rate(c->prompt + c->generated, r->run_s));
    cake_buf_addf(out, "  \"waves\": %lld,\n  \"evictions\": %lld,\n", (long long)r->waves,
                  (long long)r->evictions);
    add_times(out, "ttft_ms", &r->ttft);
    add_times(out, "itl_ms", &r->itl);
    cake_buf_adds(out, "  \"stages\": [\n");
    for (int i = 0; i < r->plan->n_hop; i++)
        add_stage(out, r, i);
    cake_buf_adds(out, "  ],\n");
    add_again(out, r);
}

/* Where the report is written first: beside path, or there itself if that is a pipe, a device or a link. */
static void first_name(const char *path, cake_buf *name)
{
    struct stat info;
    bool there_itself = !lstat(path, &info) && !S_ISREG(info.st_mode);
    cake_buf_addf(name, there_itself ? "%s" : "%s.tmp", path);
}

cake_err cake_report_check(const char *path)
{
    cake_buf name = {0};
    struct stat info;
    cake_err err = CAKE_OK;
    first_name(path, &name);
    bool there = !lstat(name.data, &info);
    FILE *f = there && !S_ISREG(info.st_mode) ? NULL : fopen(name.data, "a");
    if (f && !there)
        unlink(name.data);
    if (!f && !(there && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)))
        err = cake_fail("run", "the report cannot be written to %s: %s", path,
                        strerror(there ? EISDIR : errno));
    if (f)
        fclose(f);
    cake_buf_free(&name);
    return err;
}

cake_err cake_report_write(cake_report *r, const char *path)
{
    cake_buf out = {0}, name = {0};
    compose(r, &out);
    first_name(path, &name);
    FILE *f = fopen(name.data, "w");
    bool done = f && fwrite(out.data, 1, out.len, f) == out.len;
    done = (!f || !fclose(f)) && done;
    if (done && strcmp(name.data, path))
        done = !rename(name.data, path);
    cake_err err =
        done ? CAKE_OK : cake_fail("run", "the report cannot be written to %s: %s", path, strerror(errno));
    cake_buf_free(&out);
    cake_buf_free(&name);
    return err;
}
