/* SPDX-License-Identifier: Apache-2.0
 *
 * In: spans of this rank's master thread. Out, on rank 0: one JSON file for all ranks.
 * Invariant: the file is complete JSON even if spans were dropped, and says how many were.
 */
#include "trace/trace.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/atomic_file.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/version.h"
#include "formats/json.h"

enum { MAX_SPANS = 1 << 20, BLOCK = 256 };

struct cake_trace {
    cake_span *span; /* [MAX_SPANS] ring */
    int64_t n;       /* spans ever added */
    double *ahead;   /* [2, size] rank 0: seconds that each rank's clock is ahead, at times when[] */
    double when[2];  /* rank 0: at the beginning and at the end */
    int n_align;
};

/* Sent to rank 0 before the spans. */
typedef struct origin {
    char host[64];
    int64_t n;
} origin;

/* A message of spans to rank 0. */
typedef struct block {
    int64_t n;
    cake_span span[BLOCK];
} block;

cake_trace *cake_trace_open(void)
{
    cake_trace *t = cake_alloc(1, sizeof *t);
    t->span = cake_alloc(MAX_SPANS, sizeof *t->span);
    return t;
}

void cake_trace_close(cake_trace *t)
{
    if (!t)
        return;
    free(t->span);
    free(t->ahead);
    free(t);
}

void cake_trace_add(cake_trace *t, cake_span span, double end)
{
    if (!t)
        return;
    span.seconds = (float)(end - span.begin);
    t->span[t->n++ % MAX_SPANS] = span;
}

double cake_trace_since(cake_trace *t, cake_span_kind kind, double begin, int rows)
{
    double now = cake_clock_now();
    cake_trace_add(t, (cake_span){.begin = begin, .kind = (int32_t)kind, .rows = rows}, now);
    return now - begin;
}

void cake_trace_align(cake_trace *t, const cake_comm *world)
{
    size_t size = (size_t)world->size;
    int turn = t->n_align++ ? 1 : 0;
    double unused;
    if (!t->ahead)
        t->ahead = cake_alloc(2 * size, sizeof *t->ahead);
    for (int rank = 1; rank < world->size; rank++)
        cake_comm_clock_offset(world, 0, rank,
                               world->rank ? &unused : &t->ahead[(size_t)turn * size + (size_t)rank]);
    t->when[turn] = cake_clock_now();
}

/* Converts a rank's time to microseconds from `start` on rank 0's clock. The offset is interpolated between
 * the two measurements. */
static double aligned(const cake_trace *t, int size, int rank, double time, double start)
{
    double from = t->ahead[rank], to = t->ahead[size + rank], between = t->when[1] - t->when[0];
    double part = between > 0 ? (time - from - t->when[0]) / between : 0;
    part = part < 0 ? 0 : part > 1 ? 1 : part;
    return 1e6 * (time - (from + part * (to - from)) - start);
}

static const char *const span_name[CAKE_SPAN_KINDS] = {
    [CAKE_SPAN_LOAD] = "load",   [CAKE_SPAN_WAVE] = "wave",     [CAKE_SPAN_LAYER] = "layer",
    [CAKE_SPAN_WAIT] = "wait",   [CAKE_SPAN_SEND] = "send",     [CAKE_SPAN_FINISH] = "finish",
    [CAKE_SPAN_EMBED] = "embed", [CAKE_SPAN_HEAD] = "head",     [CAKE_SPAN_SAMPLE] = "sample",
    [CAKE_SPAN_READ] = "read",   [CAKE_SPAN_RECORD] = "record",
};

typedef struct writer {
    const cake_trace *trace;
    const cake_plan *plans; /* [n_replica] */
    FILE *out;
    int size, n_replica;
    double start;
} writer;

static const cake_plan *plan_of(const writer *w, int rank)
{
    return &w->plans[rank / (w->size / w->n_replica)];
}

/* Whether the edge connects two ranks. */
static bool is_far(const cake_plan *plan, int edge)
{
    return cake_plan_from(plan, edge) != cake_plan_to(plan, edge);
}

/* One end ('s': start, 'f': finish) of the arrow for a wave that travels to another rank. */
static void write_flow(writer *w, char end, int rank, double time, int edge, int number)
{
    const cake_plan *plan = plan_of(w, rank);
    if (is_far(plan, edge))
        fprintf(w->out,
                ",\n{\"ph\": \"%c\", \"pid\": %d, \"tid\": 0, \"ts\": %.3f, \"name\": \"link\", \"cat\": "
                "\"link\", "
                "\"id\": \"%d.%d.%d\"%s}",
                end, rank, time, plan->first, edge, number, end == 'f' ? ", \"bp\": \"e\"" : "");
}

static void write_span(writer *w, int rank, const cake_span *s)
{
    double time = aligned(w->trace, w->size, rank, s->begin, w->start);
    const cake_plan *plan = plan_of(w, rank);
    fprintf(w->out,
            ",\n{\"ph\": \"X\", \"pid\": %d, \"tid\": 0, \"ts\": %.3f, \"dur\": %.3f, \"cat\": \"%s\", "
            "\"name\": \"%s",
            rank, time, s->seconds > 0 ? 1e6 * (double)s->seconds : 0.0, span_name[s->kind],
            span_name[s->kind]);
    if (s->kind == CAKE_SPAN_LAYER)
        fprintf(w->out, " %d\"}", s->at);
    else if (s->kind == CAKE_SPAN_WAVE)
        fprintf(w->out,
                "\", \"args\": {\"lane\": %d, \"rows\": %d, \"prompt\": %d, \"generated\": %d, \"layers\": "
                "\"%d-%d\"}}",
                s->lane, s->rows, s->prompt, s->rows - s->prompt, plan->hop[s->at].first,
                plan->hop[s->at].first + plan->hop[s->at].count - 1);
    else if (s->kind == CAKE_SPAN_FINISH || s->kind == CAKE_SPAN_SEND)
        fprintf(w->out, "\", \"args\": {\"lane\": %d}}", s->lane);
    else if (s->kind == CAKE_SPAN_HEAD || s->kind == CAKE_SPAN_EMBED)
        fprintf(w->out, "\", \"args\": {\"rows\": %d}}", s->rows);
    else
        fprintf(w->out, "\"}");
    if (s->kind == CAKE_SPAN_SEND)
        write_flow(w, 's', rank, time, s->at, s->number);
    if (s->kind == CAKE_SPAN_WAVE)
        write_flow(w, 'f', rank, time, s->at, s->number);
    if (s->kind == CAKE_SPAN_FINISH)
        write_flow(w, 'f', rank, time, plan->n_hop, s->number);
}

/* Names of the ranks for Perfetto, and how many spans were dropped. */
static void write_head(writer *w, const origin *origins)
{
    int64_t dropped = 0;
    cake_buf text = {0};
    for (int rank = 0; rank < w->size; rank++)
        dropped += origins[rank].n > MAX_SPANS ? origins[rank].n - MAX_SPANS : 0;
    cake_buf_adds(&text, "{\"displayTimeUnit\": \"ms\", \"otherData\": {\"version\": ");
    cake_json_add_text(&text, cake_version(), strlen(cake_version()));
    cake_buf_addf(&text, ", \"dropped\": %lld}, \"traceEvents\": [", (long long)dropped);
    for (int rank = 0; rank < w->size; rank++) {
        cake_buf name = {0};
        const cake_plan *plan = plan_of(w, rank);
        const char *separator = ", layers ";
        cake_buf_addf(&name, "rank %d on %s", rank, origins[rank].host);
        for (int i = 0; i < plan->n_hop; i++)
            if (plan->first + plan->hop[i].rank == rank) {
                cake_buf_addf(&name, "%s%d-%d", separator, plan->hop[i].first,
                              plan->hop[i].first + plan->hop[i].count - 1);
                separator = ", ";
            }
        cake_buf_addf(&text,
                      "%s\n{\"ph\": \"M\", \"pid\": %d, \"name\": \"process_sort_index\", \"args\": "
                      "{\"sort_index\": %d}},\n",
                      rank ? "," : "", rank, rank);
        cake_buf_addf(&text,
                      "{\"ph\": \"M\", \"pid\": %d, \"name\": \"process_name\", \"args\": {\"name\": ", rank);
        cake_json_add_text(&text, name.data, name.len);
        cake_buf_adds(&text, "}}");
        cake_buf_free(&name);
    }
    fwrite(text.data, 1, text.len, w->out);
    cake_buf_free(&text);
    if (dropped)
        cake_log(CAKE_WARN, "trace",
                 "the trace keeps each rank's last %d spans: %lld older ones were dropped", MAX_SPANS,
                 (long long)dropped);
}

/* This rank's kept spans from index first on. */
static void fill(const cake_trace *t, int64_t first, block *b)
{
    int64_t kept = t->n < MAX_SPANS ? t->n : MAX_SPANS;
    b->n = kept - first < 0 ? 0 : kept - first < BLOCK ? kept - first : BLOCK;
    for (int64_t i = 0; i < b->n; i++)
        b->span[i] = t->span[(t->n - kept + first + i) % MAX_SPANS];
}

/* Gathers the spans block by block, so that rank 0 never holds all of them. w: NULL on other ranks. */
static void gather(const cake_trace *t, const cake_comm *world, writer *w)
{
    int64_t kept = t->n < MAX_SPANS ? t->n : MAX_SPANS, most = -cake_comm_allreduce_min(world, -kept);
    block *mine = cake_alloc(1, sizeof *mine), *all = w ? cake_alloc((size_t)world->size, sizeof *all) : NULL;
    for (int64_t first = 0; first < most; first += BLOCK) {
        fill(t, first, mine);
        cake_comm_gather(world, mine, all, sizeof *mine);
        for (int rank = 0; w && rank < world->size; rank++)
            for (int64_t i = 0; i < all[rank].n; i++)
                write_span(w, rank, &all[rank].span[i]);
    }
    free(all);
    free(mine);
}

cake_err cake_trace_write(cake_trace *t, const cake_comm *world, const cake_plan *plans, int n_replica,
                          const char *path, double start)
{
    origin own = {.n = t->n}, *origins = NULL;
    cake_atomic_file whole = {0};
    snprintf(own.host, sizeof own.host, "%s", world->host);
    if (world->rank == 0)
        origins = cake_alloc((size_t)world->size, sizeof *origins);
    cake_comm_gather(world, &own, origins, sizeof own);
    cake_err err = world->rank ? CAKE_OK : cake_atomic_file_open("trace", path, &whole);
    err = cake_comm_agree(world, err);
    if (!err && world->rank) {
        gather(t, world, NULL);
    } else if (!err) {
        writer w = {.trace = t,
                    .plans = plans,
                    .n_replica = n_replica,
                    .out = whole.file,
                    .size = world->size,
                    .start = start};
        write_head(&w, origins);
        gather(t, world, &w);
        fputs("\n]}\n", whole.file);
        err = cake_atomic_file_close(&whole);
    }
    free(origins);
    return err;
}
