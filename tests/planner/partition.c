/* SPDX-License-Identifier: Apache-2.0
 *
 * Partitions of a model of eight layers of one GiB each, whose cuts can be counted by hand. Buffers and KV
 * memory of the model are a few MiB, so a host with 2.9 GiB has memory for two layers.
 */
#include "planner/partition.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "bench/shapes.h"
#include "planner/memory_fit.h"
#include "planner/memory_plan.h"
#include "planner/parallelism.h"
#include "tests/suite.h"

enum { N_LAYER = 8, MAX_RANKS = N_LAYER };
#define GIB  ((int64_t)1 << 30)
#define MUCH (100.0) /* GiB: memory for all layers */
#define ENDS (GIB / 4)

typedef struct world {
    cake_model *model;
    cake_cluster cluster;
    cake_plan_input input;
    cake_planning planning;
} world;

/* n ranks, each alone on a node with so many GiB; speeds NULL: all are equal. */
static void open_world(world *w, int n, const double *gib, const double *speed)
{
    cake_buf config = {0};
    CU_ASSERT_FATAL(shape_config("tiny", 0, &config));
    cake_model_options options = {.config = config.data, .dummy = true};
    *w = (world){0};
    CU_ASSERT_FATAL(!cake_model_open("tiny", &options, &w->model));
    cake_buf_free(&config);
    CU_ASSERT_EQUAL_FATAL(cake_model_config(w->model)->n_layer, N_LAYER);
    w->input = (cake_plan_input){.model = w->model,
                                 .kernels = cake_kernels_at(0),
                                 .kv_dtype = CAKE_BF16,
                                 .context = 256,
                                 .n_thread = 1};
    w->cluster.n_rank = n;
    w->cluster.rate = cake_alloc(MAX_RANKS, sizeof *w->cluster.rate);
    w->cluster.resources = cake_alloc(MAX_RANKS, sizeof *w->cluster.resources);
    for (int i = 0; i < n; i++)
        w->cluster.resources[i] = (cake_rank_resources){.node = i,
                                                        .local_size = 1,
                                                        .n_thread = 1,
                                                        .memory = (int64_t)(gib[i] * (double)GIB),
                                                        .mapping = INT64_MAX};
    cake_planning_normalize(&w->cluster, &w->input, n);
    cake_planning_set_layers(&w->cluster, &w->input);
    for (int i = 0; i < n && speed; i++)
        w->cluster.speed[i] = speed[i];
    for (int i = 0; i < N_LAYER; i++) {
        w->input.layers.cost[i] = 1;
        w->input.layers.bytes[i] = GIB;
    }
    w->input.layers.root = 0;
    w->input.layers.ends = ENDS;
    w->planning = (cake_planning){.cluster = &w->cluster, .input = &w->input, .n_replica = 1};
}

static void close_world(world *w)
{
    cake_plan_free(&w->planning.plan);
    cake_cluster_free(&w->cluster);
    cake_plan_input_free(&w->input);
    cake_model_close(w->model);
}

/* Puts ranks [first, first + n) on one node, which has the memory of the first of them. */
static void share_node(world *w, int first, int n)
{
    for (int i = first; i < first + n; i++) {
        w->cluster.resources[i].node = first;
        w->cluster.resources[i].local_size = n;
        w->cluster.resources[i].memory = w->cluster.resources[first].memory;
    }
}

/* Asserts that all layers are there once, in order. Fills count [n]: layers of each rank. */
static void count_layers(const world *w, int n, int *count)
{
    const cake_plan *plan = &w->planning.plan;
    int next = 0;
    memset(count, 0, (size_t)n * sizeof *count);
    CU_ASSERT_EQUAL(plan->n_rank, n);
    for (int i = 0; i < plan->n_hop; i++) {
        CU_ASSERT(plan->hop[i].first == next && plan->hop[i].count > 0);
        CU_ASSERT_FATAL(plan->hop[i].rank >= 0 && plan->hop[i].rank < n);
        CU_ASSERT(i == 0 || plan->hop[i].rank == plan->hop[i - 1].rank + 1);
        count[plan->hop[i].rank] += plan->hop[i].count;
        next += plan->hop[i].count;
    }
    CU_ASSERT_EQUAL(next, N_LAYER);
}

/* Asserts that w has a plan with so many layers on each rank. */
static void expect(world *w, int n, const int *wanted)
{
    int count[MAX_RANKS];
    CU_ASSERT_EQUAL(cake_partition_solve(&w->planning, 0, n), 0);
    count_layers(w, n, count);
    for (int i = 0; i < n; i++) {
        CU_ASSERT_EQUAL(count[i], wanted[i]);
        if (count[i] != wanted[i])
            printf("\n    rank %d of %d has %d layers, expected %d", i, n, count[i], wanted[i]);
    }
}

static void test_equal(void)
{
    static const double much[MAX_RANKS] = {MUCH, MUCH, MUCH, MUCH, MUCH, MUCH, MUCH, MUCH};
    int count[MAX_RANKS];
    world w;
    open_world(&w, 1, much, NULL);
    expect(&w, 1, (int[]){8});
    close_world(&w);
    open_world(&w, 2, much, NULL);
    expect(&w, 2, (int[]){4, 4});
    w.input.layers.root = 2;
    expect(&w, 2, (int[]){3, 5});
    close_world(&w);
    open_world(&w, 3, much, NULL);
    CU_ASSERT_EQUAL(cake_partition_solve(&w.planning, 0, 3), 0);
    count_layers(&w, 3, count);
    for (int i = 0; i < 3; i++)
        CU_ASSERT(count[i] == 2 || count[i] == 3);
    close_world(&w);
    open_world(&w, 8, much, NULL);
    expect(&w, 8, (int[]){1, 1, 1, 1, 1, 1, 1, 1});
    close_world(&w);
}

static void test_rates(void)
{
    static const double much[] = {MUCH, MUCH, MUCH};
    world w;
    open_world(&w, 2, much, (double[]){1, 1.0 / 3});
    expect(&w, 2, (int[]){6, 2});
    close_world(&w);
    open_world(&w, 3, much, (double[]){0.5, 1, 0.5});
    expect(&w, 3, (int[]){2, 4, 2});
    close_world(&w);
}

/* Hosts have memory for 2, 1, 3 and so on layers; the others take what is left. */
static void test_memory(void)
{
    world w;
    open_world(&w, 2, (double[]){MUCH, 2.9}, NULL);
    expect(&w, 2, (int[]){6, 2});
    close_world(&w);
    open_world(&w, 2, (double[]){2.9, MUCH}, NULL); /* the ends take a quarter */
    expect(&w, 2, (int[]){2, 6});
    w.cluster.resources[0].memory = 2 * GIB + ENDS / 2;
    expect(&w, 2, (int[]){1, 7});
    close_world(&w);
    open_world(&w, 3, (double[]){MUCH, 1.9, 3.9}, (double[]){0.25, 1, 1});
    expect(&w, 3, (int[]){4, 1, 3});
    w.cluster.resources[0].mapping = 3 * GIB; /* a limit of address space, less the ends */
    w.cluster.resources[1].memory = w.cluster.resources[2].memory = (int64_t)MUCH * GIB;
    w.cluster.speed[0] = 1;
    w.cluster.speed[1] = w.cluster.speed[2] = 0.1;
    expect(&w, 3, (int[]){2, 3, 3});
    close_world(&w);
}

/* Ranks of one node share its memory, but not their limits of address space. */
static void test_shared_memory(void)
{
    int count[3];
    world w;
    open_world(&w, 3, (double[]){3.9, 0, MUCH}, NULL);
    share_node(&w, 0, 2);
    CU_ASSERT_EQUAL(cake_partition_solve(&w.planning, 0, 3), 0);
    count_layers(&w, 3, count);
    CU_ASSERT(count[0] + count[1] == 3 && count[2] == 5);
    w.cluster.resources[0].memory = w.cluster.resources[1].memory = (int64_t)MUCH * GIB;
    w.cluster.resources[0].mapping = 20 * GIB;
    w.cluster.resources[1].mapping = GIB + GIB / 2;
    w.cluster.speed[2] = 0.5;
    expect(&w, 3, (int[]){5, 1, 2});
    w.cluster.resources[0].mapping = INT64_MAX;
    expect(&w, 3, (int[]){5, 1, 2});
    close_world(&w);
}

/* The reported deficit is the smallest amount of memory with which the model fits. */
static void test_too_little(void)
{
    world w;
    open_world(&w, 2, (double[]){2.9, 2.9}, NULL);
    int64_t lack = cake_partition_solve(&w.planning, 0, 2);
    CU_ASSERT(lack > GIB + 3 * GIB / 10 && lack < GIB + GIB / 2);
    for (int i = 0; i < 2; i++)
        w.cluster.resources[i].memory += lack;
    expect(&w, 2, (int[]){4, 4});
    for (int i = 0; i < 2; i++)
        w.cluster.resources[i].memory -= 1;
    CU_ASSERT_EQUAL(cake_partition_solve(&w.planning, 0, 2), 1);
    close_world(&w);
}

static void expect_message(const world *w, cake_memory_lack lack, const char *end)
{
    cake_buf text = {0};
    lack.at = lack.where = "";
    lack.needs = "this is what it needs";
    lack.option = "-np";
    lack.bytes = 3 * GIB;
    cake_log_capture(&text);
    CU_ASSERT_EQUAL(cake_memory_fit_too_large(&w->planning, &lack), CAKE_ERR_FATAL);
    cake_log_capture(NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text.data);
    CU_ASSERT(strstr(text.data, "the model does not fit: this is what it needs, 3.0 GiB too little; ") !=
              NULL);
    CU_ASSERT(strstr(text.data, end) != NULL);
    if (!strstr(text.data, end))
        printf("\n    %s    expected \"%s\"", text.data, end);
    cake_buf_free(&text);
}

static void test_message(void)
{
    world w;
    open_world(&w, 2, (double[]){2.9, 2.9}, NULL);
    cake_memory_lack lack = {.each = 29 * GIB / 10, .n_rank = 2, .n_sharing = 1, .n_pipeline = 1};
    expect_message(&w, lack, "; 4 such ranks would do (-np 4)\n");
    lack.n_pipeline = 3;
    expect_message(&w, lack, "; 12 such ranks would do (-np 12)\n");
    lack =
        (cake_memory_lack){.each = 3 * GIB / 2, .n_rank = 2, .n_sharing = 2, .n_local = 2, .n_pipeline = 1};
    expect_message(&w, lack, "; 3 such hosts with 2 ranks each would do (-np 6)\n");
    lack.n_rank = 6;
    expect_message(&w, lack, "; use more hosts\n");
    lack.each = GIB / 2;
    lack.overhead = GIB / 4;
    expect_message(&w, lack, "; however many ranks there are, one of them needs 1.2 GiB\n");
    lack.layers_of = "it";
    expect_message(&w, lack, "; give it fewer layers, or a host with more memory\n");
    close_world(&w);
}

static void test_min_ranks(void)
{
    world w;
    open_world(&w, 1, (double[]){MUCH}, NULL);
    CU_ASSERT_EQUAL(cake_partition_min_ranks(&w.planning, 8 * GIB + ENDS, 1), 1);
    CU_ASSERT_EQUAL(cake_partition_min_ranks(&w.planning, 8 * GIB, 1), 2);
    CU_ASSERT_EQUAL(cake_partition_min_ranks(&w.planning, GIB + ENDS, 1), 8);
    CU_ASSERT_EQUAL(cake_partition_min_ranks(&w.planning, GIB, 1), 0); /* rank 0 has the ends alone: 9 */
    CU_ASSERT_EQUAL(cake_partition_min_ranks(&w.planning, 3 * GIB / 2, 2), 6); /* two ranks have 3 */
    CU_ASSERT_EQUAL(cake_partition_max_layer_bytes(&w.planning), GIB);
    w.input.layers.ends = 2 * GIB;
    CU_ASSERT_EQUAL(cake_partition_max_layer_bytes(&w.planning), 2 * GIB);
    close_world(&w);
}

static cake_buf check_replicas(int n_rank, int n_replica)
{
    cake_buf text = {0};
    cake_log_capture(&text);
    cake_err err = cake_parallelism_check(n_rank, n_replica, N_LAYER, true, "start it with -np", true);
    cake_log_capture(NULL);
    cake_buf_adds(&text, "");
    CU_ASSERT_EQUAL(err, text.len ? CAKE_ERR_USAGE : CAKE_OK);
    return text;
}

/* The partition is asked for at most one rank per layer. */
static void test_more_ranks_than_layers(void)
{
    static const struct {
        int n_rank, n_replica;
        const char *part;
    } rows[] = {
        {8, 1, NULL},
        {9, 1, "9 ranks for a model of 8 layers: each rank needs at least one; start it with -np 8 or fewer"},
        {16, 2, NULL},
        {18, 2,
         "18 ranks for 2 replicas of a model of 8 layers: each rank needs at least one; "
         "start it with -np 16 or fewer, or use --replicas 3, 6, 9 or 18"},
        {3, 2, "3 ranks cannot be divided evenly; start it with -np 4 or another multiple of 2"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cake_buf text = check_replicas(rows[i].n_rank, rows[i].n_replica);
        CU_ASSERT(rows[i].part ? strstr(text.data, rows[i].part) != NULL : !text.len);
        if (rows[i].part && !strstr(text.data, rows[i].part))
            printf("\n    %s    expected \"%s\"", text.data, rows[i].part);
        cake_buf_free(&text);
    }
}

/* A plan whose two ranks have two hops each. */
static cake_plan zigzag(void)
{
    cake_plan plan = {.hop = cake_alloc(4, sizeof *plan.hop), .n_hop = 4, .n_rank = 2};
    for (int i = 0; i < 4; i++)
        plan.hop[i] = (cake_hop){i % 2, 2 * i, 2};
    return plan;
}

static void test_adopt(void)
{
    world w;
    open_world(&w, 2, (double[]){MUCH, 4.9}, NULL);
    cake_plan plan = zigzag();
    CU_ASSERT_EQUAL(cake_partition_adopt(&w.planning, &plan), 0);
    CU_ASSERT(!plan.hop && w.planning.plan.n_hop == 4 && w.planning.max_hops == 4);
    w.cluster.resources[1].memory = 3 * GIB;
    plan = zigzag();
    int64_t lack = cake_partition_adopt(&w.planning, &plan);
    CU_ASSERT_EQUAL(lack, GIB + cake_memory_plan_overhead_bytes(&w.planning, 1, 1));
    close_world(&w);
}

/* A rank has one cache for the layers of all its hops. */
static void test_pages(void)
{
    enum { N_PAGE = 40 };
    world w;
    open_world(&w, 2, (double[]){MUCH, MUCH}, NULL);
    cake_plan plan = zigzag();
    CU_ASSERT_EQUAL(cake_partition_adopt(&w.planning, &plan), 0);
    cake_kv_use kv = {0};
    cake_memory_plan_add_kv(&w.planning, &(cake_hop){0, 0, 4}, &kv);
    CU_ASSERT(kv.page[0] > 0 && kv.state == 0);
    w.input.kv_memory = N_PAGE * kv.page[0];
    cake_partition_size_kv(&w.planning);
    CU_ASSERT_EQUAL(w.planning.shape.n_page[0], N_PAGE);
    w.input.kv_memory--;
    cake_partition_size_kv(&w.planning);
    CU_ASSERT_EQUAL(w.planning.shape.n_page[0], N_PAGE - 1);
    CU_ASSERT_EQUAL(cake_partition_kv_deficit(&w.planning), 0);
    int64_t needed = 4 * GIB + (N_PAGE - 1) * kv.page[0] + cake_memory_plan_overhead_bytes(&w.planning, 1, 1);
    w.cluster.resources[1].memory = needed;
    CU_ASSERT_EQUAL(cake_partition_kv_deficit(&w.planning), 0);
    w.cluster.resources[1].memory = needed - 7;
    CU_ASSERT_EQUAL(cake_partition_kv_deficit(&w.planning), 7);
    close_world(&w);
}

static void test_same(void)
{
    world w;
    open_world(&w, 4, (double[]){4, 4, 4, 4}, NULL);
    share_node(&w, 0, 2);
    share_node(&w, 2, 2);
    CU_ASSERT(cake_partition_same(&w.planning, 0, 2, 2));
    w.cluster.resources[3].memory++;
    CU_ASSERT(!cake_partition_same(&w.planning, 0, 2, 2));
    w.cluster.resources[3].memory--;
    w.cluster.speed[1] /= 2;
    CU_ASSERT(!cake_partition_same(&w.planning, 0, 2, 2));
    CU_ASSERT(cake_partition_same(&w.planning, 0, 2, 1));
    w.cluster.speed[1] *= 2;
    w.cluster.resources[3].node = 3;
    CU_ASSERT(!cake_partition_same(&w.planning, 0, 2, 2));
    close_world(&w);
}

/* Hosts of 2.9 GiB have memory for two of eight layers, or for eight of which a quarter is held. */
static void test_weights_memory(void)
{
    static const double gib[] = {2.9, 2.9};
    world w;
    open_world(&w, 2, gib, NULL);
    CU_ASSERT(cake_partition_solve(&w.planning, 0, 2) > 0);
    w.input.weights_memory = -25;
    CU_ASSERT_DOUBLE_EQUAL(cake_planning_held_fraction(&w.input, 2), 0.25, 1e-12);
    expect(&w, 2, (int[]){4, 4});
    w.input.weights_memory = GIB; /* of each rank, which has more than four GiB */
    CU_ASSERT_DOUBLE_EQUAL(cake_planning_held_fraction(&w.input, 2), 2 / 8.25, 1e-12);
    expect(&w, 2, (int[]){4, 4});
    w.input.weights_memory = 3 * GIB;
    CU_ASSERT(cake_partition_solve(&w.planning, 0, 2) > 0);
    w.input.weights_memory = 100 * GIB;
    CU_ASSERT_EQUAL(cake_planning_held_fraction(&w.input, 2), 1);
    close_world(&w);
}

int main(void)
{
    static const suite_test tests[] = {
        {"1, 2, 3 and 8 equal ranks", test_equal},
        {"ranks of unequal rates", test_rates},
        {"hosts of unequal memory", test_memory},
        {"ranks that share a host's memory", test_shared_memory},
        {"too little memory: the bytes that are missing", test_too_little},
        {"too little memory: the message", test_message},
        {"the minimum number of ranks", test_min_ranks},
        {"more ranks than layers", test_more_ranks_than_layers},
        {"a given plan", test_adopt},
        {"pages of the KV cache", test_pages},
        {"replicas that are alike", test_same},
        {"weights that are not held", test_weights_memory},
    };
    return SUITE_MAIN("partition", tests);
}
