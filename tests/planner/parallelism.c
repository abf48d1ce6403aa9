/* SPDX-License-Identifier: Apache-2.0
 *
 * Replicas and slices for worlds that are files: tests/planner/plans/NAME.txt, whose README says what its
 * lines mean. Of every plan it is checked that all layers are there once, in order, and that no host is
 * given more weights than it has memory; of the choice, that fewer stages would not have held the
 * weights, or are not what the file expects.
 */
#include "planner/parallelism.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "bench/shapes.h"
#include "planner/partition.h"
#include "tests/suite.h"

enum { MOST = 1024, LINE = 512 };
#define GIB 0x1p30

typedef struct world {
    const char *name;
    int line, cases, n; /* ranks */
    cake_model *model;
    cake_cluster cluster;
    cake_plan_input input;
    cake_planning planning;
    int64_t requests;
    int replicas; /* as chosen; 0: not yet */
} world;

static void same(const world *w, const char *what, const char *got, const char *wanted)
{
    if (!strcmp(got, wanted)) {
        CU_PASS();
        return;
    }
    CU_FAIL();
    printf("\n    %s:%d: %s \"%s\", expected \"%s\"", w->name, w->line, what, got, wanted);
}

static void end_case(world *w)
{
    cake_plan_free(&w->planning.plan);
    cake_cluster_free(&w->cluster);
    cake_plan_input_free(&w->input);
    cake_model_close(w->model);
    w->model = NULL;
    w->planning = (cake_planning){.cluster = &w->cluster, .input = &w->input, .n_replica = 1};
}

static void begin_case(world *w, const char *shape)
{
    end_case(w);
    cake_buf config = {0};
    CU_ASSERT_FATAL(shape_config(shape, 0, &config));
    cake_model_options options = {.config = config.data, .dummy = true};
    w->requests = w->n = w->replicas = 0;
    CU_ASSERT_FATAL(!cake_model_open(shape, &options, &w->model));
    cake_buf_free(&config);
    w->input.model = w->model;
    w->input.kernels = cake_kernels_at(0);
    w->input.kv_dtype = CAKE_BF16;
    w->input.context = cake_model_config(w->input.model)->context;
    w->input.n_thread = 8;
    w->cluster.rate = cake_alloc(MOST, sizeof *w->cluster.rate);
    w->cluster.resources = cake_alloc(MOST, sizeof *w->cluster.resources);
}

static void add_hosts(world *w, const char *words)
{
    int hosts = 0, ranks = 0;
    double memory = 0, flops = 0, bytes = 0;
    CU_ASSERT_FATAL(sscanf(words, "%d %d %lf %lf %lf", &hosts, &ranks, &memory, &flops, &bytes) == 5);
    CU_ASSERT_FATAL(w->n + hosts * ranks <= MOST);
    for (int i = 0; i < hosts * ranks; i++, w->n++) {
        cake_rate *rate = &w->cluster.rate[w->n];
        *rate = (cake_rate){.cpus = 8, .flops = 1e9 * flops, .bytes = 1e9 * bytes};
        snprintf(rate->host, sizeof rate->host, "h%d", w->n - i % ranks);
        w->cluster.resources[w->n] = (cake_rank_resources){.node = w->n - i % ranks,
                                                           .local_size = ranks,
                                                           .n_thread = 8,
                                                           .memory = (int64_t)(memory * GIB),
                                                           .mapping = INT64_MAX};
    }
}

/* The layers of a replica's ranks, and what hosts hold of them. */
static bool cut(world *w, int replica, cake_buf *out)
{
    int size = w->n / w->replicas, next = 0, hop = 0;
    bool fits = !cake_partition_solve(&w->planning, replica * size, size);
    const cake_plan *plan = &w->planning.plan;
    cake_buf_adds(out, "");
    for (int rank = 0; rank < size; rank++) {
        const cake_hop *h = hop < plan->n_hop && plan->hop[hop].rank == rank ? &plan->hop[hop++] : NULL;
        CU_ASSERT(h ? h->first == next && h->count > 0 : rank == 0);
        if (h)
            cake_buf_addf(out, "%s%d-%d", rank ? " " : "", h->first, h->first + h->count - 1);
        else
            cake_buf_adds(out, "-");
        next += h ? h->count : 0;
    }
    CU_ASSERT_EQUAL(next, cake_model_config(w->input.model)->n_layer);
    return fits;
}

/* That no host of the world has more weights than memory, and that replicas of ranks that are alike are cut
 * alike. */
static void check_memory(world *w)
{
    int64_t *held = cake_alloc(MOST, sizeof *held);
    int size = w->n / w->replicas;
    cake_buf text = {0}, before = {0};
    for (int r = 0; r < w->replicas; r++) {
        CU_ASSERT(cut(w, r, &text));
        if (r && cake_partition_same(&w->planning, (r - 1) * size, r * size, size))
            same(w, "slices of the one before", text.data, before.data);
        cake_buf_free(&before);
        before = text;
        text = (cake_buf){0};
        const cake_plan *plan = &w->planning.plan;
        held[w->cluster.resources[plan->first].node] += w->input.layers.ends;
        for (int i = 0; i < plan->n_hop; i++)
            for (int j = 0; j < plan->hop[i].count; j++)
                held[w->cluster.resources[plan->first + plan->hop[i].rank].node] +=
                    w->input.layers.bytes[plan->hop[i].first + j];
    }
    for (int i = 0; i < w->n; i++)
        CU_ASSERT(held[i] <= w->cluster.resources[i].memory);
    cake_buf_free(&text);
    cake_buf_free(&before);
    free(held);
}

static void choose(world *w, const char *wanted)
{
    cake_buf why = {0}, text = {0};
    char got[64];
    cake_planning_normalize(&w->cluster, &w->input, w->n);
    cake_planning_set_layers(&w->cluster, &w->input);
    w->replicas = cake_parallelism_best(&w->planning, w->n, w->requests, false, &why);
    CU_ASSERT_FATAL(w->replicas > 0 && w->n % w->replicas == 0);
    w->planning.n_replica = w->replicas;
    bool fits = cut(w, 0, &text);
    snprintf(got, sizeof got, "%d of %d", w->replicas, w->n / w->replicas);
    same(w, why.data, fits ? got : "none", wanted);
    if (fits)
        check_memory(w);
    cake_buf_free(&why);
    cake_buf_free(&text);
    w->cases++;
}

static void read_line(world *w, char *line)
{
    double value;
    long long number;
    char shape[LINE];
    int replica, at = 0;
    line[strcspn(line, "\n")] = 0;
    if (*line == '#' || !*line)
        return;
    if (sscanf(line, "model %s", shape) == 1) {
        begin_case(w, shape);
    } else if (!strncmp(line, "hosts ", 6)) {
        add_hosts(w, line + 6);
    } else if (sscanf(line, "requests %lld", &number) == 1) {
        w->requests = number;
    } else if (sscanf(line, "seqs %lld", &number) == 1) {
        w->input.max_seqs = (int)number;
    } else if (sscanf(line, "kv %lf", &value) == 1) {
        w->input.kv_memory = (int64_t)(value * GIB);
    } else if (!strncmp(line, "= ", 2)) {
        choose(w, line + 2);
    } else if (sscanf(line, "slices %d %n", &replica, &at) == 1 && at) {
        cake_buf text = {0};
        CU_ASSERT(cut(w, replica, &text));
        same(w, "slices", text.data, line + at);
        cake_buf_free(&text);
    } else {
        same(w, "line", line, "");
    }
}

static void read_world(const char *name)
{
    world w = {.name = name};
    char path[256], line[LINE];
    snprintf(path, sizeof path, "planner/plans/%s", name);
    FILE *f = fopen(suite_path(path), "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    for (; fgets(line, sizeof line, f);) {
        w.line++;
        read_line(&w, line);
    }
    fclose(f);
    end_case(&w);
    CU_ASSERT(w.cases > 0);
}

static void test_files(void)
{
    int n = 0;
    DIR *dir = opendir(suite_path("planner/plans"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(dir);
    for (struct dirent *e; (e = readdir(dir));)
        if (strstr(e->d_name, ".txt")) {
            read_world(e->d_name);
            n++;
        }
    closedir(dir);
    CU_ASSERT(n >= 2);
}

int main(void)
{
    static const suite_test tests[] = {
        {"replicas and slices of worlds that are files", test_files},
    };
    return SUITE_MAIN("spread", tests);
}
