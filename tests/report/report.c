/* SPDX-License-Identifier: Apache-2.0
 *
 * The report with all its keys, the timeline, and the table on standard error, on 1 to 4 ranks; complete also
 * if a run fails.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/run/launch.h"
#include "tests/suite.h"

enum { N_LAYER = 8, MOST_RANKS = 4, N_REQUEST = 20 }; /* layers of the demo model */

static cake_buf said;

static char *in_tmp(const char *name)
{
    static char path[4][512];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", suite_tmp(), name);
    return path[turn];
}

/* The demo's first prompts. */
static const char *demo_prompts(void)
{
    const char *path = in_tmp("demo.jsonl");
    char command[2048];
    snprintf(command, sizeof command, "head -n %d '%s' >'%s'", N_REQUEST,
             suite_path("jobs/demo/prompts.jsonl"), path);
    CU_ASSERT_FATAL(!access(path, F_OK) || !system(command));
    return path;
}

/* They run on np ranks, with more arguments; the exit status. */
static int run(int np, const char *more)
{
    char arguments[2048], model[512];
    snprintf(model, sizeof model, "%s", suite_path("jobs/demo/model"));
    snprintf(arguments, sizeof arguments, "run -m '%s' -i '%s' --force --progress none --speculate off %s",
             model, demo_prompts(), more);
    return launch_command(np, arguments, &said);
}

static cake_json *load(const char *path)
{
    cake_json *doc = NULL;
    CU_ASSERT_EQUAL_FATAL(cake_json_load("test", path, false, &doc), CAKE_OK);
    return doc;
}

/* Whether node is of a kind: n a number that is not negative, t a text, l a list, o an object. */
static bool is_of(const cake_json *node, char kind)
{
    switch (kind) {
    case 'n':
        return cake_json_is_number(node) && cake_json_real(node, -1) >= 0;
    case 't':
        return cake_json_kind(node) == CAKE_JSON_STRING;
    case 'l':
        return cake_json_kind(node) == CAKE_JSON_ARRAY;
    default:
        return cake_json_kind(node) == CAKE_JSON_OBJECT;
    }
}

/* keys: "n waves", kind and name; ends with NULL. */
static void has_keys(const cake_json *object, const char *const *keys)
{
    for (; *keys; keys++)
        if (!is_of(cake_json_get(object, *keys + 2), **keys)) {
            printf("\n    \"%s\" is %s\n", *keys + 2, cake_json_kind_name(cake_json_get(object, *keys + 2)));
            CU_FAIL("a key of the report is not what it should be");
        }
}

static double real(const cake_json *object, const char *key)
{
    return cake_json_real(cake_json_get(object, key), NAN);
}

static void check_top(const cake_json *report, int np)
{
    has_keys(report, (const char *const[]){"t model",   "n ranks",    "o seconds",  "o requests",
                                           "o tokens",  "o rate",     "n waves",    "n evictions",
                                           "o ttft_ms", "o itl_ms",   "o journal",  "n starved_share",
                                           "l stages",  "o roofline", "t version",  "t mpi",
                                           "l hosts",   "l command",  "l settings", "o environment",
                                           NULL});
    has_keys(cake_json_get(report, "seconds"), (const char *const[]){"n load", "n run", "n total", NULL});
    has_keys(cake_json_get(report, "journal"),
             (const char *const[]){"n write_s", "n sync_s", "n finish_s", NULL});
    has_keys(cake_json_get(report, "requests"),
             (const char *const[]){"n done", "n failed", "n resumed", NULL});
    has_keys(cake_json_get(report, "tokens"),
             (const char *const[]){"n prompt", "n prompt_shared", "n generated", "n computed", NULL});
    has_keys(cake_json_get(report, "rate"),
             (const char *const[]){"n prompt_per_s", "n generated_per_s", "n total_per_s", NULL});
    has_keys(cake_json_get(report, "ttft_ms"), (const char *const[]){"n p50", "n p99", NULL});
    has_keys(cake_json_get(report, "itl_ms"), (const char *const[]){"n p50", "n p99", NULL});
    has_keys(cake_json_get(report, "roofline"), (const char *const[]){"n flops", "n bytes", "n peak_flops",
                                                                      "n peak_bandwidth", "n share", NULL});
    const cake_json *advice = cake_json_get(report, "advice"); /* none of a run too short to judge by */
    CU_ASSERT(advice && (cake_json_kind(advice) == CAKE_JSON_NULL || is_of(advice, 't')));
    CU_ASSERT(real(report, "ranks") == np);
    CU_ASSERT((int)cake_json_size(cake_json_get(report, "hosts")) == np);
    CU_ASSERT((int)cake_json_size(cake_json_get(report, "stages")) == np);
    CU_ASSERT(cake_json_size(cake_json_get(report, "command")) > 5);
    CU_ASSERT(cake_json_get(cake_json_get(report, "environment"), "OMP_NUM_THREADS") != NULL);
    CU_ASSERT(real(cake_json_get(report, "requests"), "done") == N_REQUEST);
    const cake_json *seconds = cake_json_get(report, "seconds"), *journal = cake_json_get(report, "journal");
    CU_ASSERT(real(journal, "write_s") > 0 && real(journal, "write_s") < real(seconds, "run"));
    CU_ASSERT(real(journal, "finish_s") > 0 && real(journal, "finish_s") < real(seconds, "total"));
    CU_ASSERT(real(seconds, "load") + real(seconds, "run") <= real(seconds, "total") + 1e-3);
}

/* Times within times; floating-point text rounds. */
static void check_times(const cake_json *stage, double waves, double run)
{
    const cake_json *list = cake_json_get(stage, "layer_ms");
    double layers = 0;
    for (size_t i = 0; i < cake_json_size(list); i++) {
        CU_ASSERT(cake_json_real(cake_json_at(list, i), 0) > 0);
        layers += 1e-3 * waves * cake_json_real(cake_json_at(list, i), 0);
    }
    CU_ASSERT(layers > 0 && layers <= real(stage, "compute_s") + 1e-4);
    CU_ASSERT(real(stage, "compute_s") <= real(stage, "busy_s") + 1e-4);
    /* a rank other than 0 may begin and end a little before and after it */
    CU_ASSERT(real(stage, "busy_s") <= run + 1);
    CU_ASSERT(real(stage, "idle_share") < 1);
}

static void check_stage(const cake_json *report, int rank, int np, int *layer)
{
    const cake_json *stage = cake_json_at(cake_json_get(report, "stages"), (size_t)rank);
    const cake_json *ranges = cake_json_get(stage, "layers"), *link = cake_json_get(stage, "link");
    has_keys(stage,
             (const char *const[]){"n rank",          "t host",         "t device",      "t isa",
                                   "t cpus",          "n threads",      "l layers",      "l layer_ms",
                                   "n weights_bytes", "n read_bytes",   "n kv_bytes",    "n peak_bytes",
                                   "n buffers_bytes", "n opened_bytes", "n grown_bytes", "n load_s",
                                   "n compute_s",     "n busy_s",       "n idle_share",  "t waits_for",
                                   "n expected_s",    "n embed_ms",     "n head_ms",     "n sample_ms",
                                   "n read_ms",       "o link",         "o roofline",    NULL});
    has_keys(link, (const char *const[]){"t kind", "n rtt_us", "n bytes", "n wait_s", "n move_s", NULL});
    has_keys(cake_json_get(stage, "roofline"), (const char *const[]){"n flops", "n bytes", "n peak_flops",
                                                                     "n peak_bandwidth", "n share", NULL});
    CU_ASSERT(real(stage, "rank") == rank);
    int n = 0;
    for (size_t i = 0; i < cake_json_size(ranges); i++) {
        CU_ASSERT(cake_json_int(cake_json_at(cake_json_at(ranges, i), 0), -1) == *layer);
        *layer = (int)cake_json_int(cake_json_at(cake_json_at(ranges, i), 1), -1) + 1;
        n = *layer;
    }
    const cake_json *first = cake_json_at(cake_json_at(ranges, 0), 0);
    CU_ASSERT((int)cake_json_size(cake_json_get(stage, "layer_ms")) == n - (int)cake_json_int(first, 0));
    CU_ASSERT_STRING_EQUAL(cake_json_text(cake_json_get(link, "kind"), NULL), np > 1 ? "mpi" : "self");
    CU_ASSERT((real(link, "rtt_us") > 0) == (np > 1) && (real(link, "bytes") > 0) == (np > 1));
    CU_ASSERT((real(stage, "head_ms") > 0) == (rank == 0) && (real(stage, "embed_ms") > 0) == (rank == 0));
    CU_ASSERT((real(stage, "sample_ms") > 0) == (rank == 0));
    check_times(stage, real(report, "waves"), real(cake_json_get(report, "seconds"), "run"));
}

/* After np ranks: in `make check` one and three, of which the layers cannot be equal parts. */
static int next_np(int np)
{
    return np + (suite_all() ? 1 : 2);
}

static void test_report(void)
{
    double flops = 0;
    for (int np = 1; np <= MOST_RANKS; np = next_np(np)) {
        char more[1024];
        snprintf(more, sizeof more, "-o '%s' --report '%s'", in_tmp("r.jsonl"), in_tmp("report.json"));
        CU_ASSERT_EQUAL(run(np, more), 0);
        cake_json *report = load(in_tmp("report.json"));
        check_top(report, np);
        int layer = 0;
        for (int rank = 0; rank < np; rank++)
            check_stage(report, rank, np, &layer);
        CU_ASSERT_EQUAL(layer, N_LAYER);
        /* what is computed does not depend on who computes it; how near it comes to the peaks is below
         * them */
        const cake_json *roofline = cake_json_get(report, "roofline");
        if (np == 1)
            flops = real(roofline, "flops");
        CU_ASSERT(flops > 0 && fabs(real(roofline, "flops") / flops - 1) < 1e-9);
        CU_ASSERT(real(roofline, "share") > 0);
        cake_json_free(report);
    }
}

/* A run in which no token is generated has no times between tokens, one without a file no journal, and says
 * so. */
static void test_nothing_generated(void)
{
    FILE *f = fopen(in_tmp("none.jsonl"), "w");
    fputs("{\"prompt\": \"a\", \"frequency_penalty\": 7}\n", f);
    fclose(f);
    char arguments[1024];
    snprintf(arguments, sizeof arguments, "run -m '%s' -i '%s' --report '%s' -q",
             suite_path("jobs/demo/model"), in_tmp("none.jsonl"), in_tmp("none.json"));
    CU_ASSERT_EQUAL(launch_command(2, arguments, &said), 3);
    cake_json *report = load(in_tmp("none.json"));
    CU_ASSERT(cake_json_kind(cake_json_get(cake_json_get(report, "itl_ms"), "p99")) == CAKE_JSON_NULL);
    CU_ASSERT(cake_json_kind(cake_json_get(cake_json_get(report, "journal"), "write_s")) == CAKE_JSON_NULL);
    CU_ASSERT(real(report, "waves") == 0 && real(cake_json_get(report, "roofline"), "flops") == 0);
    CU_ASSERT(real(cake_json_get(report, "requests"), "failed") == 1);
    cake_json_free(report);
}

/* Sums over the events of one trace. */
typedef struct sums {
    int spans[MOST_RANKS], named[MOST_RANKS];
    int waves, layers, begun, ended, wrong, heads, samples;
    double rows;
} sums;

static bool is_text(const cake_json *event, const char *key, const char *text)
{
    const char *found = cake_json_text(cake_json_get(event, key), NULL);
    return found && !strcmp(found, text);
}

static void add_event(const cake_json *event, int np, sums *s)
{
    int pid = (int)cake_json_int(cake_json_get(event, "pid"), -1);
    if (pid < 0 || pid >= np) {
        s->wrong++;
        return;
    }
    const cake_json *args = cake_json_get(event, "args");
    s->begun += is_text(event, "ph", "s");
    s->ended += is_text(event, "ph", "f");
    s->named[pid] += is_text(event, "ph", "M") && is_text(event, "name", "process_name");
    if (!is_text(event, "ph", "X"))
        return;
    s->spans[pid]++;
    s->wrong += !(real(event, "ts") >= 0) || !(real(event, "dur") >= 0);
    s->layers += is_text(event, "cat", "layer");
    s->heads += is_text(event, "cat", "head");
    s->samples += is_text(event, "cat", "sample");
    if (!is_text(event, "cat", "wave"))
        return;
    s->waves++;
    s->wrong +=
        real(args, "rows") != real(args, "prompt") + real(args, "generated") || !(real(args, "lane") >= 0);
    s->rows += is_text(args, "layers", "0-7") || pid == 0 ? real(args, "rows") : 0;
}

static sums sums_of(const char *path, int np)
{
    cake_json *trace = load(path);
    const cake_json *events = cake_json_get(trace, "traceEvents");
    sums s = {0};
    CU_ASSERT(cake_json_kind(events) == CAKE_JSON_ARRAY);
    CU_ASSERT(real(cake_json_get(trace, "otherData"), "dropped") == 0);
    for (size_t i = 0; i < cake_json_size(events); i++)
        add_event(cake_json_at(events, i), np, &s);
    cake_json_free(trace);
    return s;
}

static void test_trace(void)
{
    for (int np = 1; np <= MOST_RANKS; np = next_np(np)) {
        char more[1024];
        snprintf(more, sizeof more, "--log error -o '%s' --report '%s' --trace '%s'", in_tmp("t.jsonl"),
                 in_tmp("t.json"), in_tmp("trace.json"));
        CU_ASSERT_EQUAL(run(np, more), 0);
        CU_ASSERT_EQUAL(said.len, 0); /* ranks may be more than cpus, of which is warned */
        sums s = sums_of(in_tmp("trace.json"), np);
        cake_json *report = load(in_tmp("t.json"));
        int waves = (int)real(report, "waves");
        CU_ASSERT_EQUAL(s.wrong, 0);
        CU_ASSERT_EQUAL(s.waves, np * waves);
        CU_ASSERT_EQUAL(s.layers, N_LAYER * waves);
        CU_ASSERT(s.heads > 0 && s.heads <= waves && s.samples == s.heads);
        CU_ASSERT(s.rows == real(cake_json_get(report, "tokens"), "computed"));
        CU_ASSERT_EQUAL(s.begun,
                        np > 1 ? np * waves : 0); /* the first edge is rank 0's own, the last leads back */
        CU_ASSERT_EQUAL(s.ended, s.begun);
        for (int rank = 0; rank < np; rank++)
            CU_ASSERT(s.spans[rank] > waves && s.named[rank] == 1);
        cake_json_free(report);
    }
}

/* A run that fails in the middle still tells how far it came. */
static void test_trace_of_failure(void)
{
    char more[1024];
    for (int np = 1; np <= 2; np++) {
        unlink(in_tmp("broken.json"));
        snprintf(more, sizeof more, "-o /dev/full --trace '%s'", in_tmp("broken.json"));
        CU_ASSERT_EQUAL(run(np, more), 1);
        sums s = sums_of(in_tmp("broken.json"), np);
        CU_ASSERT(s.waves > 0 && !s.wrong);
    }
}

static void test_paths(void)
{
    static const struct {
        const char *trace, *report; /* in the folder, where they do not begin with a slash */
        int status;
        const char *text;
    } rows[] = {
        {"no/such/trace", NULL, 1, "the trace cannot be written to"},
        {"", NULL, 1, "the trace cannot be written to"},
        {"/dev/full", NULL, 0, "the trace cannot be written to /dev/full: No space left"},
        {"same", "same", 2, "--report and --trace are the same file"},
        {"paths.jsonl", NULL, 2, "-o and --trace are the same file"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char more[2048], out[512];
        bool device = rows[i].trace[0] == '/';
        snprintf(out, sizeof out, "%s", in_tmp("paths.jsonl"));
        snprintf(more, sizeof more, "-o '%s' --trace '%s' %s%s", out,
                 device ? rows[i].trace : in_tmp(rows[i].trace), rows[i].report ? "--report " : "",
                 rows[i].report ? in_tmp(rows[i].report) : "");
        CU_ASSERT_EQUAL(run(1, more), rows[i].status);
        CU_ASSERT(strstr(said.data, rows[i].text) != NULL);
        CU_ASSERT_EQUAL(access(out, F_OK) == 0, device); /* said before the work, where it can be */
        unlink(out);
    }
}

static void test_table(void)
{
    char more[1024];
    snprintf(more, sizeof more, "-o '%s'", in_tmp("table.jsonl"));
    CU_ASSERT_EQUAL(run(2, more), 0); /* it is a short run */
    CU_ASSERT(strstr(said.data, "cake-mpi: 20 requests (0 failed)") && !strstr(said.data, "waits for") &&
              !strstr(said.data, "advice") && !strstr(said.data, "too short"));
    snprintf(more, sizeof more, "-o '%s' -v", in_tmp("table.jsonl"));
    CU_ASSERT_EQUAL(run(2, more), 0);
    CU_ASSERT(strstr(said.data, "cake-mpi: rank  host") && strstr(said.data, "waits for  ") &&
              strstr(said.data, "  4-7  ") && !strstr(said.data, "too short"));
    snprintf(more, sizeof more, "-o '%s' --quiet", in_tmp("table.jsonl"));
    CU_ASSERT_EQUAL(run(1, more), 0);
    CU_ASSERT_EQUAL(said.len, 0);
}

/* A file of rates of this host, whatever its name, for 1 and 2 threads. */
static const char *write_rates(const char *name, double flops)
{
    const char *path = in_tmp(name);
    FILE *f = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    for (int threads = 1; threads <= 2; threads++) {
        fprintf(f,
                "{\"name\": \"peak.f32\", \"isa\": \"ref\", \"host\": \"elsewhere\", \"threads\": %d, "
                "\"value\": %g, \"unit\": \"GFLOP/s\"}\n",
                threads, flops);
        fprintf(f,
                "{\"name\": \"peak.read\", \"isa\": \"ref\", \"host\": \"elsewhere\", \"threads\": %d, "
                "\"value\": %g, \"unit\": \"GB/s\"}\n",
                threads, flops);
    }
    fclose(f);
    return path;
}

/* n prompts of 100 tokens, alike up to the last or all different, 20 generated for each; or up to 20. */
static const char *write_prompts(const char *name, int n, bool sure, bool alike)
{
    const char *path = in_tmp(name);
    FILE *f = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    for (int i = 0; i < n; i++) {
        fprintf(f, "{\"prompt\": [%d", 300 + (alike ? 0 : i % 1500));
        for (int j = 1; j < 100; j++)
            fprintf(f, ", %d", 300 + ((alike && j < 99 ? 0 : i * 31) + j * j) % 1500);
        fprintf(f, "], \"max_tokens\": 20, \"ignore_eos\": %s}\n", sure ? "true" : "false");
    }
    fclose(f);
    return path;
}

static cake_json *plan(int np, const char *prompts, const char *rates)
{
    char arguments[2048], model[512];
    snprintf(model, sizeof model, "%s", suite_path("jobs/demo/model"));
    snprintf(arguments, sizeof arguments,
             "plan -m '%s' --isa ref --threads 1 --json --log error -i '%s' --rates '%s'", model, prompts,
             rates);
    CU_ASSERT_EQUAL_FATAL(launch_command(np, arguments, &said), 0);
    cake_json *doc = NULL;
    cake_fault fault;
    CU_ASSERT_EQUAL_FATAL(cake_json_parse(said.data, said.len, &doc, &fault), CAKE_OK);
    return doc;
}

static double foretold(const cake_json *doc, const char *which)
{
    return real(cake_json_get(cake_json_get(doc, "prediction"), which), "seconds");
}

/* The prediction, at rates that are given: twice the rate, half the time, less what does not depend on it. */
static void test_plan(void)
{
    char slow[512], fast[512], some[512], many[512], open[512];
    snprintf(slow, sizeof slow, "%s", write_rates("slow.json", 0.5));
    snprintf(fast, sizeof fast, "%s", write_rates("fast.json", 1));
    snprintf(some, sizeof some, "%s", write_prompts("some.jsonl", 300, true, false));
    snprintf(many, sizeof many, "%s", write_prompts("many.jsonl", 6000, true, false));
    snprintf(open, sizeof open, "%s", write_prompts("open.jsonl", 300, false, false));
    for (int np = 1; np <= 3; np = next_np(np)) {
        cake_json *a = plan(np, some, slow), *b = plan(np, some, fast), *c = plan(np, open, fast);
        has_keys(a, (const char *const[]){"l ranks", "n nodes", "t isa", "n context", "o waves", "l kv",
                                          "o requests", "o tokens", "o prediction", NULL});
        CU_ASSERT((int)cake_json_size(cake_json_get(a, "ranks")) == np);
        for (int i = 0; i < np; i++) {
            const cake_json *rank = cake_json_at(cake_json_get(a, "ranks"), (size_t)i);
            has_keys(rank, (const char *const[]){"n rank", "t host", "t cpus", "n threads", "l layers",
                                                 "n weights_bytes", "n kv_bytes", "n buffers_bytes",
                                                 "n flops", "n bandwidth", "n wave_s", "n idle_share", NULL});
            CU_ASSERT(real(rank, "flops") == 0.5e9 && real(rank, "idle_share") < 0.5);
        }
        CU_ASSERT(real(cake_json_get(a, "tokens"), "total") == 30000);
        CU_ASSERT(foretold(a, "least") == foretold(a, "most") && foretold(b, "most") > 1);
        CU_ASSERT(fabs(foretold(a, "most") / foretold(b, "most") - 2) < 0.1);
        CU_ASSERT(foretold(c, "least") < 0.95 * foretold(c, "most") &&
                  foretold(c, "most") == foretold(b, "most"));
        cake_json_free(a);
        cake_json_free(b);
        cake_json_free(c);
    }
    cake_json *a = plan(1, some, fast), *b = plan(1, many, fast); /* only the first ones are simulated */
    CU_ASSERT(fabs(foretold(b, "most") / foretold(a, "most") / 20 - 1) < 0.05);
    cake_json_free(b);
    b = plan(1, write_prompts("alike.jsonl", 300, true, true), fast); /* 64 of 100 tokens are computed once */
    CU_ASSERT(real(cake_json_get(b, "tokens"), "shared") == 299 * 64);
    CU_ASSERT(foretold(b, "most") < 0.75 * foretold(a, "most") &&
              foretold(b, "most") > 0.3 * foretold(a, "most"));
    cake_json_free(a);
    cake_json_free(b);
}

int main(void)
{
    const suite_test tests[] = {
        {"the report has every name, and its times fit into each other", test_report},
        {"... also where nothing was generated", test_nothing_generated},
        {"the trace has the spans of every rank", test_trace},
        {"... also of a run that fails", test_trace_of_failure},
        {"a trace that cannot be written", test_paths},
        {"the table of stages, and --quiet", test_table},
        {"what plan foretells", test_plan},
    };
    int failed = SUITE_MAIN("telling", tests);
    cake_buf_free(&said);
    return failed;
}
