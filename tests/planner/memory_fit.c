/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether memory suffices, in bytes counted by hand: limits of a topology file, the size of the cache, and
 * the messages, which name rank, host and what is missing.
 */
#include "planner/memory_fit.h"

#include "planner/offload.h"
#include "tests/planner/world.h"

static const cake_memory gpu_memory = {.name = "GPU memory"};
static const cake_comm world = {.rank = 3, .size = 8, .local_rank = 0, .local_size = 2, .host = "node7"};

/* An open world of eight ranks with a plan, 12 sequences and a page of 1000 bytes. */
static cake_memory_use open_use(cake_rank *me, int64_t memory)
{
    open_tiny(me, 8, memory);
    me->planning.shape =
        (cake_schedule_shape){.n_lane = 2, .lane_seqs = 6, .chunk = 64, .max_row = 128, .n_kv_group = 1};
    return (cake_memory_use){.kernels = &cake_kernels_ref, .memory = memory, .n_rank = 2, .kv = {{1000}, 0}};
}

static void test_limit(void)
{
    cake_kernels gpu = cake_kernels_ref;
    gpu.memory = &gpu_memory;
    cake_rank me;
    cake_memory_use r = open_use(&me, 10000);
    CU_ASSERT_EQUAL(cake_memory_fit_limit(&me, &r), INT64_MAX);
    me.topology_rank.memory = 7000;
    CU_ASSERT_EQUAL(cake_memory_fit_limit(&me, &r), 7000);
    me.topology_rank.memory = -30;
    CU_ASSERT_EQUAL(cake_memory_fit_limit(&me, &r), 3000);
    me.input.gpu_kernels = &gpu; /* then the file means the GPU's memory */
    CU_ASSERT_EQUAL(cake_memory_fit_limit(&me, &r), INT64_MAX);
    r.kernels = &gpu;
    CU_ASSERT_EQUAL(cake_memory_fit_limit(&me, &r), 3000);
    close_world(&me);
}

static void test_cache(void)
{
    cake_kernels gpu = cake_kernels_ref;
    gpu.memory = &gpu_memory;
    cake_rank me;
    cake_memory_use r = open_use(&me, 10000);
    r.fixed = 1500;
    r.weights = 1000;
    r.all_fixed = 4000; /* 6000 are left for two ranks */
    CU_ASSERT_EQUAL(cake_memory_fit_cache(&me, &r), 1500);
    me.input.kv_memory = -50;
    CU_ASSERT_EQUAL(cake_memory_fit_cache(&me, &r), 1500);
    me.input.kv_memory = -100;
    CU_ASSERT_EQUAL(cake_memory_fit_cache(&me, &r), 3000);
    me.mapping = 1500 + 2000; /* of which this rank's fixed bytes take 1500 */
    CU_ASSERT_EQUAL(cake_memory_fit_cache(&me, &r), 2000);
    me.mapping = 1500 + 3001;
    CU_ASSERT_EQUAL(cake_memory_fit_cache(&me, &r), 3000);
    me.topology_rank.memory = 1000 + 700; /* of which the weights take 1000 */
    CU_ASSERT_EQUAL(cake_memory_fit_cache(&me, &r), 700);
    me.topology_rank.memory = 900;
    CU_ASSERT_EQUAL(cake_memory_fit_cache(&me, &r), -100);
    me.topology_rank.memory = 0;
    me.input.kv_memory = 123456;
    CU_ASSERT_EQUAL(cake_memory_fit_cache(&me, &r), 123456);
    me.input.kv_memory = 0;
    me.input.gpu_kernels = r.kernels = &gpu; /* all that is left, whatever the process may map */
    me.mapping = 0;
    r.n_rank = 1;
    CU_ASSERT_EQUAL(cake_memory_fit_cache(&me, &r), 6000);
    close_world(&me);
}

/* A requested cache is divided by states and pages of the layers in each memory. */
static void test_divide(void)
{
    cake_rank me;
    cake_memory_use all[2] = {open_use(&me, 10000)};
    me.planning.shape.n_saved = 3; /* 15 states */
    all[0].kv = (cake_kv_use){.page = {60}, .state = 2};
    all[1].kv = (cake_kv_use){.page = {240}, .state = 2};
    all[0].cache = all[1].cache = 3600;
    cake_memory_fit_divide(&me, all, 2);
    CU_ASSERT(all[0].cache == 3600 && all[1].cache == 3600); /* none is requested */
    me.input.kv_memory = 3600;
    cake_memory_fit_divide(&me, all, 1);
    CU_ASSERT_EQUAL(all[0].cache, 3600);
    cake_memory_fit_divide(&me, all, 2);
    CU_ASSERT(all[0].cache == 900 && all[1].cache == 2700); /* 90 to 270 */
    close_world(&me);
}

static void test_measure(void)
{
    cake_rank me;
    cake_memory_use r = open_use(&me, 0);
    me.machine.memory = 12345;
    me.replica.rank = 1;
    set_plan(&me, 2, 2, (cake_hop[]){{0, 0, 3}, {1, 3, 5}});
    const cake_planning *p = &me.planning;
    int64_t weights = cake_offload_weights(p, &p->plan, 1, &cake_kernels_ref),
            other = cake_memory_plan_measure(p, &p->plan, 1, 1, &cake_kernels_ref).fixed;
    r = cake_memory_fit_measure(&me, &cake_kernels_ref);
    CU_ASSERT(r.memory == 12345 && r.n_rank == 1 && r.weights == weights && weights > 0);
    CU_ASSERT(r.fixed == weights + other && r.all_fixed == r.fixed && r.tables > 0);
    CU_ASSERT_EQUAL(r.kv.page[0], 5 * PAGE_BYTES);
    close_world(&me);
}

static void expect(const cake_rank *me, const cake_memory_use *r, int64_t all_kv, const char *wanted)
{
    cake_buf text = {0};
    cake_log_capture(&text);
    cake_err err = cake_memory_fit_check(&world, me, r, all_kv, true);
    expect_said(&text, wanted);
    CU_ASSERT_EQUAL(err, wanted ? CAKE_ERR_FATAL : CAKE_OK);
}

static void test_too_large(void)
{
    cake_buf text = {0};
    cake_rank me;
    cake_memory_use r = open_use(&me, 5000);
    r.weights = 900;
    r.fixed = 1000;
    r.all_fixed = 5000;
    r.cache = 1000;
    expect(&me, &r, 0, NULL);
    r.all_fixed = 5001;
    expect(&me, &r, 0,
           "the model does not fit: rank 3 needs 1000 bytes (weights 900 bytes), "
           "the 2 ranks of node7 together 4.9 KiB, but 4.9 KiB of memory are free, 1 byte too little; ");
    r.all_fixed = 5777;
    expect(&me, &r, 0, ", 777 bytes too little; ");
    cake_log_capture(&text); /* another rank reports */
    CU_ASSERT_EQUAL(cake_memory_fit_check(&world, &me, &r, 0, false), CAKE_ERR_FATAL);
    expect_said(&text, NULL);

    me.topology_file.path = "cake.yml";
    me.topology_rank = (cake_topology_rank){.worker = "left", .at = {4, 2}};
    expect(&me, &r, 0, "cake.yml:4:2: the model does not fit: rank 3 needs");
    expect(&me, &r, 0,
           "; give it fewer layers, or a host with more memory; "
           "its layers are those of worker 'left' (cake.yml:4:2)");
    me.topology_rank = (cake_topology_rank){0};

    cake_kernels gpu = cake_kernels_ref;
    gpu.memory = &gpu_memory;
    me.input.gpu_kernels = r.kernels = &gpu;
    me.gpu.number = 5;
    expect(&me, &r, 0,
           "rank 3 needs 1000 bytes (weights 900 bytes), but its share of GPU 5 of node7 is 4.9 KiB, "
           "777 bytes too little; ");
    close_world(&me);
}

static void test_tables(void)
{
    cake_rank me;
    cake_memory_use r = open_use(&me, 4000);
    r.fixed = r.all_fixed = 5000;
    r.tables = 1001; /* more than a quarter, and without them it would fit */
    expect(&me, &r, 0,
           "the page tables of 12 sequences of up to 256 tokens take 1001 bytes on node7, "
           "which has 1 byte left; use --context 0 or less, or fewer --max-seqs");
    r.tables = 1500;
    expect(&me, &r, 0, "which has 500 bytes left; use --context 42 or less");
    r.tables = 1000;
    expect(&me, &r, 0, "the model does not fit: rank 3 needs");
    close_world(&me);
}

static void test_mapping(void)
{
    cake_rank me;
    cake_memory_use r = open_use(&me, 100000);
    r.weights = 300;
    r.fixed = r.all_fixed = 500;
    r.cache = 1000;
    me.mapping = 500;
    expect(&me, &r, 0, NULL);
    me.mapping = 490;
    expect(&me, &r, 0,
           "ulimit -v lets rank 3 on node7 map 490 bytes more, but weights (300 bytes) and buffers take "
           "500 bytes, 10 bytes too little; ");
    me.input.kv_memory = 100;
    expect(&me, &r, 0, "weights (300 bytes), the requested KV cache and buffers take 600 bytes, 110 bytes");
    close_world(&me);
}

static void test_small_cache(void)
{
    cake_rank me;
    cake_memory_use r = open_use(&me, 100000);
    r.cache = 1000;
    expect(&me, &r, 0, NULL);
    r.cache = 999;
    expect(&me, &r, 0,
           "a KV cache of 999 bytes does not hold one page of 64 tokens (1000 bytes on rank 3 of node7); "
           "use more --kv-memory or more ranks");
    r.cache = -999;
    expect(&me, &r, 0, "a KV cache of 0 bytes does not hold");
    r.kv = (cake_kv_use){.page = {1000}, .state = 10};
    me.planning.shape.n_saved = 1; /* 13 states */
    r.cache = 1130;
    expect(&me, &r, 0, NULL);
    r.cache = 1129;
    expect(&me, &r, 0, "(1000 bytes on rank 3 of node7, in addition to the recurrent states)");
    r.cache = 129;
    expect(&me, &r, 0,
           "a KV cache of 129 bytes does not hold the recurrent states of 12 sequences "
           "(130 bytes on rank 3 of node7); use more --kv-memory, fewer --max-seqs or more ranks");
    close_world(&me);
}

/* What all ranks of the host request together; its first rank says so. */
static void test_requested(void)
{
    cake_buf text = {0};
    cake_comm second = world;
    cake_rank me;
    cake_memory_use r = open_use(&me, 10000);
    r.fixed = 2000;
    r.all_fixed = 9500;
    r.cache = 3000;
    expect(&me, &r, 500, NULL);
    expect(&me, &r, 501, "501 bytes of KV cache of 2 ranks do not fit into the 500 bytes left on node7; ");
    second.local_rank = 1;
    cake_log_capture(&text);
    CU_ASSERT_EQUAL(cake_memory_fit_check(&second, &me, &r, 501, true), CAKE_OK);
    expect_said(&text, NULL);
    close_world(&me);
}

static void test_topology(void)
{
    cake_rank me;
    cake_memory_use r = open_use(&me, 10000);
    r.weights = r.fixed = r.all_fixed = 600;
    r.cache = 1000;
    me.topology_file.path = "cake.yml";
    me.topology_rank =
        (cake_topology_rank){.worker = "left", .memory = 600, .memory_at = {9, 3}, .kv_memory_at = {8, 5}};
    expect(&me, &r, 0, NULL);
    me.topology_rank.memory = 599;
    expect(&me, &r, 0,
           "cake.yml:9:3: memory is 599 bytes for worker 'left', but the weights of its layers take 600 ");
    me.topology_rank.memory = -5; /* 500 of 10000 bytes */
    expect(&me, &r, 0, "cake.yml:9:3: memory is 500 bytes for worker 'left', but the weights");
    me.topology_rank.memory = 10001;
    expect(&me, &r, 0, "cake.yml:9:3: memory is 9.8 KiB for worker 'left', but 9.8 KiB are free there; ");
    me.topology_rank.memory = 1000;
    me.input.kv_memory = 400;
    expect(&me, &r, 0, NULL);
    me.input.kv_memory = 401;
    expect(&me, &r, 0, "but the requested KV cache takes 401 bytes and the weights 600 bytes; ");
    me.topology_rank.memory = 0;
    me.input.kv_memory = me.topology_rank.kv_memory = 10001;
    expect(&me, &r, 0, "cake.yml:8:5: kv_memory is 9.8 KiB for worker 'left', but 9.8 KiB are free there; ");
    close_world(&me);
}

int main(void)
{
    static const suite_test tests[] = {
        {"the limit of a topology file", test_limit},        {"bytes of the cache", test_cache},
        {"a requested cache of two memories", test_divide},  {"what a rank takes", test_measure},
        {"a model that is too large", test_too_large},       {"page tables that are too large", test_tables},
        {"too little address space", test_mapping},          {"a cache that is too small", test_small_cache},
        {"more cache than there is memory", test_requested}, {"a topology file's memory", test_topology},
    };
    return SUITE_MAIN("memory_fit", tests);
}
