/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of memory by numbers computed by hand: sizes of caches, sequences and pages that fit, bytes that
 * a rank takes.
 */
#include "planner/memory_plan.h"

#include <stdlib.h>

#include "engine/engine.h"
#include "logits/logits.h"
#include "planner/offload.h"
#include "tests/planner/world.h"

enum { STATE_BYTES = 4 * (4 * 8 * 16 + 3 * (2 * 2 * 8 + 4 * 16)) }; /* of one delta net of DELTA */

static void test_cache_bytes(void)
{
    static const struct {
        int64_t requested, left;
        bool gpu;
        int64_t bytes;
    } rows[] = {
        {0, 1000, false, 500},  {0, 1000, true, 1000},     {0, 7, false, 3},        {-40, 1000, false, 400},
        {-40, 1000, true, 400}, {-100, 1000, false, 1000}, {-1, 99, false, 0},      {300, 1000, false, 300},
        {300, 1000, true, 300}, {3000, 1000, false, 3000}, {0, -1000, false, -500}, {0, 0, true, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CU_ASSERT_EQUAL(cake_memory_plan_cache_bytes(rows[i].requested, rows[i].left, rows[i].gpu),
                        rows[i].bytes);
}

/* Fills a shape of n_lane lanes. */
static void set_shape(cake_rank *me, int n_lane, int lane_seqs, int n_saved)
{
    const cake_config *config = cake_model_config(me->model);
    cake_schedule_shape *shape = &me->planning.shape;
    *shape = (cake_schedule_shape){.n_lane = n_lane,
                                   .lane_seqs = lane_seqs,
                                   .chunk = 64,
                                   .max_row = 128,
                                   .n_saved = n_saved,
                                   .n_kv_group = config->n_kv_group};
    memcpy(shape->window, config->window, sizeof shape->window);
}

static void test_layers(void)
{
    cake_rank me;
    cake_kv_use kv = {0};
    open_tiny(&me, 1, 0);
    cake_memory_plan_add_kv(&me.planning, &(cake_hop){0, 2, 3}, &kv);
    CU_ASSERT(kv.page[0] == 3 * PAGE_BYTES && kv.state == 0);
    cake_memory_plan_add_kv(&me.planning, &(cake_hop){0, 7, 1}, &kv);
    CU_ASSERT_EQUAL(kv.page[0], 4 * PAGE_BYTES);
    me.input.kv_dtype = CAKE_F32;
    cake_memory_plan_add_kv(&me.planning, &(cake_hop){0, 0, 1}, &kv);
    CU_ASSERT_EQUAL(kv.page[0], 6 * PAGE_BYTES);
    close_world(&me);

    open_world(&me, DELTA, 1, 0);
    kv = (cake_kv_use){0};
    cake_memory_plan_add_kv(&me.planning, &(cake_hop){0, 1, 6}, &kv); /* one of them of full attention */
    CU_ASSERT(kv.page[0] == PAGE_BYTES && kv.state == 5 * STATE_BYTES);
    cake_memory_plan_add_kv(&me.planning, &(cake_hop){0, 7, 1}, &kv);
    CU_ASSERT(kv.page[0] == 2 * PAGE_BYTES && kv.state == 5 * STATE_BYTES);
    set_shape(&me, 2, 3, 0);
    CU_ASSERT_EQUAL(cake_memory_plan_states(&me.planning, &kv), 6 * 5 * STATE_BYTES);
    me.planning.shape.n_saved = 2;
    CU_ASSERT_EQUAL(cake_memory_plan_states(&me.planning, &kv), 8 * 5 * STATE_BYTES);
    close_world(&me);
}

/* States take at most half of the cache; those saved count. */
static void test_fit_seqs(void)
{
    static const struct {
        int n_saved;
        int64_t state, cache;
        int seqs;
    } rows[] = {
        {0, 100, 4000, 10}, /* 20 slots take 2000, 200 for a sequence of each lane */
        {0, 100, 3999, 9},  {0, 100, 2000, 5},  {0, 100, 399, 0}, {0, 100, 0, 0},
        {0, 100, -5, 0},    {4, 100, 4800, 10}, /* 24 take 2400 */
        {4, 100, 4799, 9},  {4, 100, 4000, 8},  {0, 0, 0, 10},    {4, 0, 0, 10},
    };
    cake_rank me;
    open_world(&me, DELTA, 1, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cake_kv_use kv = {.page = {1000}, .state = rows[i].state};
        set_shape(&me, 2, 10, rows[i].n_saved);
        CU_ASSERT_EQUAL(cake_memory_plan_fit_seqs(&me.planning, &kv, rows[i].cache), rows[i].seqs);
    }
    close_world(&me);
}

static void test_fit_pages(void)
{
    cake_rank me;
    open_world(&me, DELTA, 1, 0); /* 256 positions are 4 pages for each of 5 sequences */
    cake_kv_use kv = {.page = {10}, .state = 7};
    set_shape(&me, 1, 5, 1);
    int max[CAKE_MAX_KV_GROUPS];
    cake_memory_plan_max_pages(&me.planning, max);
    CU_ASSERT_EQUAL(max[0], 20);
    CU_ASSERT_EQUAL(cake_memory_plan_fit_pages(&me.planning, &kv, 6 * 7 + 99), 9);
    CU_ASSERT_EQUAL(cake_memory_plan_fit_pages(&me.planning, &kv, 6 * 7 + 100), 10);
    CU_ASSERT_EQUAL(cake_memory_plan_fit_pages(&me.planning, &kv, 1000), 20);
    CU_ASSERT_EQUAL(cake_memory_plan_fit_pages(&me.planning, &kv, 6 * 7 + 9), 0);
    CU_ASSERT_EQUAL(cake_memory_plan_fit_pages(&me.planning, &kv, -1), 0);
    cake_memory_plan_set_pages(&me.planning, 9);
    CU_ASSERT_EQUAL(cake_memory_plan_kv_bytes(&me.planning, &kv), 6 * 7 + 9 * 10);
    cake_memory_plan_set_pages(&me.planning, 21);
    CU_ASSERT_EQUAL(me.planning.shape.n_page[0], 20);
    close_world(&me);
}

/* Lines of 128 elements take 256 bytes in BF16 and 130 in int8: nearly twice as many pages fit. */
static void test_int8_cache(void)
{
    enum { LAYERS = 28, LINES = 2 * 64 * 8, BF16 = LAYERS * LINES * 256, INT8 = LAYERS * LINES * 130 };
    cake_rank me;
    cake_kv_use kv = {0}, codes = {0};
    cake_buf config = {0};
    CU_ASSERT_FATAL(shape_config("qwen3-0.6b", 0, &config));
    open_world(&me, config.data, 1, 0);
    cake_buf_free(&config);
    set_shape(&me, 1, 200, 0); /* of 4 pages each */
    cake_memory_plan_add_kv(&me.planning, &(cake_hop){0, 0, LAYERS}, &kv);
    me.input.kv_dtype = CAKE_I8;
    cake_memory_plan_add_kv(&me.planning, &(cake_hop){0, 0, LAYERS}, &codes);
    CU_ASSERT(kv.page[0] == BF16 && codes.page[0] == INT8);
    CU_ASSERT_EQUAL(cake_memory_plan_fit_pages(&me.planning, &kv, 400 * (int64_t)BF16), 400);
    CU_ASSERT_EQUAL(cake_memory_plan_fit_pages(&me.planning, &codes, 400 * (int64_t)BF16), 787);
    cake_cost cost = cake_cost_of_layers(me.model, &cake_kernels_ref, 0, LAYERS, CAKE_I8);
    CU_ASSERT_EQUAL(cost.kv[0].position_bytes, INT8 / 64); /* what a generated row reads of a position */
    close_world(&me);
}

/* A sequence holds at most 4 pages where a row sees 64 positions and a wave has 128 rows: 63 + 128 positions
 * may begin at the last position of a page. Such layers do not limit the length of a sequence. */
static void test_windows(void)
{
    cake_rank me;
    open_world(&me, WINDOWS, 1, 0);
    const cake_config *config = cake_model_config(me.model);
    CU_ASSERT_EQUAL_FATAL(config->n_kv_group, 2);
    int window = config->window[0] ? 0 : 1, full = 1 - window, max[CAKE_MAX_KV_GROUPS];
    CU_ASSERT(config->window[window] == 64 && config->window[full] == 0);
    cake_kv_use kv = {0};
    cake_memory_plan_add_kv(&me.planning, &(cake_hop){0, 0, 3}, &kv);
    CU_ASSERT(kv.page[window] == 2 * PAGE_BYTES && kv.page[full] == PAGE_BYTES);
    set_shape(&me, 1, 3, 0);
    me.input.context = 1024;
    cake_memory_plan_max_pages(&me.planning, max);
    CU_ASSERT(max[full] == 3 * 16 && max[window] == 3 * 4);
    CU_ASSERT_EQUAL(cake_memory_plan_fit_pages(&me.planning, &kv, 12 * 3 * PAGE_BYTES), 12);
    CU_ASSERT_EQUAL(cake_memory_plan_fit_pages(&me.planning, &kv, 12 * 3 * PAGE_BYTES - 1), 11);
    CU_ASSERT_EQUAL(cake_memory_plan_fit_pages(&me.planning, &kv, (12 * 3 + 5) * PAGE_BYTES), 17);
    cake_memory_plan_set_pages(&me.planning, 17);
    CU_ASSERT(me.planning.shape.n_page[full] == 17 && me.planning.shape.n_page[window] == 12);
    CU_ASSERT_EQUAL(cake_memory_plan_kv_bytes(&me.planning, &kv), (17 + 2 * 12) * PAGE_BYTES);
    cake_memory_plan_set_pages(&me.planning, 5);
    CU_ASSERT(me.planning.shape.n_page[full] == 5 && me.planning.shape.n_page[window] == 5);

    set_plan(&me, 2, 3, (cake_hop[]){{0, 0, 1}, {1, 1, 1}, {0, 2, 1}});
    CU_ASSERT_EQUAL(cake_memory_plan_rank_max_positions(&me.planning, 0, PAGE_BYTES), 1024);
    CU_ASSERT_EQUAL(cake_memory_plan_rank_max_positions(&me.planning, 1, 2 * PAGE_BYTES), 128);
    close_world(&me);
}

static void test_max_positions(void)
{
    enum { PAGES = 5 * PAGE_BYTES }; /* of the five layers of rank 1, in two hops */
    cake_rank me;
    open_tiny(&me, 2, 0);
    me.input.context = 1000;
    set_plan(&me, 2, 3, (cake_hop[]){{1, 0, 4}, {0, 4, 3}, {1, 7, 1}});
    CU_ASSERT_EQUAL(cake_memory_plan_rank_max_positions(&me.planning, 1, 3 * PAGES), 192);
    CU_ASSERT_EQUAL(cake_memory_plan_rank_max_positions(&me.planning, 1, 3 * PAGES - 1), 128);
    CU_ASSERT_EQUAL(cake_memory_plan_rank_max_positions(&me.planning, 1, 15 * PAGES), 1000);
    CU_ASSERT_EQUAL(cake_memory_plan_rank_max_positions(&me.planning, 1, 14 * PAGES), 14 * 64);
    CU_ASSERT_EQUAL(cake_memory_plan_rank_max_positions(&me.planning, 1, 0), 64);
    CU_ASSERT_EQUAL(cake_memory_plan_rank_max_positions(&me.planning, 1, -1), 64);
    me.input.kv_memory = 2 * PAGES; /* as requested, whatever there is */
    CU_ASSERT_EQUAL(cake_memory_plan_rank_max_positions(&me.planning, 1, 9 * PAGES), 128);
    me.input.kv_memory = -50;
    CU_ASSERT_EQUAL(cake_memory_plan_rank_max_positions(&me.planning, 1, 3 * PAGES), 192);
    me.cluster.resources[0].memory = 3 * PAGE_BYTES * 4;
    me.cluster.resources[1].memory = 7 * PAGES;
    CU_ASSERT_EQUAL(cake_memory_plan_max_positions(&me.planning), 256);
    me.cluster.resources[0].memory = 3 * PAGE_BYTES * 8;
    CU_ASSERT_EQUAL(cake_memory_plan_max_positions(&me.planning), 448);
    close_world(&me);
}

/* Tables have 4 entries for each slot. Of scratch, a row of 128 has what the operations of a layer need:
 * norm, q, mixer, k, v, gate, up, cos, sin, and the packed input of the widest product. */
static void test_dense(void)
{
    enum {
        TABLES = 128, /* 2 * 3 * 4 * 4 bytes, rounded to 64 */
        SCRATCH = 128 * 4 * (64 + 64 + 64 + 32 + 32 + 128 + 128 + 8 + 8 + 128),
        WAVE = 1000,
        CLIENT = 50000,
        DISPATCH = 70000
    };
    cake_rank me;
    open_tiny(&me, 2, 0);
    set_shape(&me, 2, 3, 0);
    const cake_planning *p = &me.planning;
    const cake_config *config = cake_model_config(me.model);
    me.planning.wave_bytes = WAVE;
    me.planning.shape.n_page[0] = 77; /* pages are not counted */
    set_plan(&me, 2, 3, (cake_hop[]){{0, 0, 2}, {1, 2, 5}, {0, 7, 1}});
    cake_memory_use r = cake_memory_plan_measure(p, &p->plan, 1, 1, &cake_kernels_ref);
    CU_ASSERT(r.tables == TABLES && r.kv.page[0] == 5 * PAGE_BYTES && r.kv.state == 0);
    CU_ASSERT_EQUAL(r.fixed, TABLES + SCRATCH + 3 * WAVE); /* two lanes and the stop wave */
    CU_ASSERT_EQUAL(cake_memory_plan_overhead_bytes(p, 1, 1), r.fixed);
    CU_ASSERT_EQUAL(cake_memory_plan_buffer_bytes(p, &p->plan, 1, 1), SCRATCH + 3 * WAVE);

    /* Rank 0 has two slices, receives on one edge only, and has the head and the engine. */
    int64_t root = (int64_t)(cake_logits_bytes(config, &cake_kernels_ref, 3, 5) +
                             cake_engine_bytes(config, &p->shape, 5));
    me.input.client_bytes = CLIENT;
    me.input.dispatch_bytes = DISPATCH;
    r = cake_memory_plan_measure(p, &p->plan, 0, 5, &cake_kernels_ref);
    CU_ASSERT(r.tables == 2 * TABLES && r.kv.page[0] == 3 * PAGE_BYTES);
    CU_ASSERT_EQUAL(r.fixed, 2 * TABLES + 2 * SCRATCH + 3 * WAVE + root);
    me.planning.n_replica = 3;
    r = cake_memory_plan_measure(p, &p->plan, 0, 5, &cake_kernels_ref);
    CU_ASSERT_EQUAL(r.fixed, 2 * TABLES + 2 * SCRATCH + 3 * WAVE + root + 2 * DISPATCH);
    me.planning.plan.first = 2; /* of the second replica */
    r = cake_memory_plan_measure(p, &p->plan, 0, 5, &cake_kernels_ref);
    CU_ASSERT_EQUAL(r.fixed, 2 * TABLES + 2 * SCRATCH + 3 * WAVE + root + CLIENT);
    close_world(&me);
}

/* Matrices of a layer: q, o; k, v; gate, up, down. Norms of 64, 64, 16 and 16 are kept as float32. */
static void test_weights(void)
{
    enum {
        LAYER = 2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 128 * 64) + 4 * (64 + 64 + 16 + 16),
        ENDS = 2 * 512 * 64 + 4 * 64 /* tied; the final norm */
    };
    cake_rank me;
    open_tiny(&me, 2, 0);
    set_plan(&me, 2, 3, (cake_hop[]){{0, 0, 2}, {1, 2, 5}, {0, 7, 1}});
    const cake_planning *p = &me.planning;
    CU_ASSERT_EQUAL(cake_offload_weights(p, &p->plan, 1, &cake_kernels_ref), 5 * LAYER);
    CU_ASSERT_EQUAL(cake_offload_weights(p, &p->plan, 0, &cake_kernels_ref), 3 * LAYER + ENDS);
    CU_ASSERT(me.input.layers.bytes[4] == LAYER && me.input.layers.ends == ENDS);
    close_world(&me);
}

/* Tables for the layers of full attention; states are counted as cache, not as tables. */
static void test_delta(void)
{
    cake_rank me;
    open_world(&me, DELTA, 2, 0);
    set_shape(&me, 2, 3, 2);
    set_plan(&me, 2, 2, (cake_hop[]){{0, 0, 2}, {1, 2, 6}});
    const cake_planning *p = &me.planning;
    cake_memory_use r = cake_memory_plan_measure(p, &p->plan, 1, 1, &cake_kernels_ref);
    CU_ASSERT(r.kv.page[0] == 2 * PAGE_BYTES && r.kv.state == 4 * STATE_BYTES);
    CU_ASSERT_EQUAL(r.tables, 128);
    int64_t fixed = r.fixed;
    me.planning.shape.n_saved = 0;
    r = cake_memory_plan_measure(p, &p->plan, 1, 1, &cake_kernels_ref);
    CU_ASSERT(r.tables == 128 && r.fixed == fixed);
    me.planning.max_positions = 64 * 64;
    r = cake_memory_plan_measure(p, &p->plan, 1, 1, &cake_kernels_ref);
    CU_ASSERT_EQUAL(r.tables, 6 * 64 * 4);
    CU_ASSERT_EQUAL(r.fixed, fixed + 6 * 64 * 4 - 128);
    close_world(&me);
}

/* The GPU has the first layers, the host the others with the head, unless the GPU has all. */
static void test_gpu(void)
{
    static const cake_memory memory = {.name = "GPU memory"};
    cake_kernels gpu = cake_kernels_ref;
    gpu.memory = &memory;
    cake_rank me;
    open_tiny(&me, 1, 0);
    me.input.gpu_kernels = &gpu;
    me.planning.gpu_layers = 3;
    set_shape(&me, 1, 3, 0);
    set_plan(&me, 1, 1, (cake_hop[]){{0, 0, 8}});
    const cake_planning *p = &me.planning;
    const cake_config *config = cake_model_config(me.model);
    cake_memory_use on_gpu = cake_memory_plan_measure(p, &p->plan, 0, 1, &gpu),
                    on_host = cake_memory_plan_measure(p, &p->plan, 0, 1, &cake_kernels_ref);
    CU_ASSERT(on_gpu.kv.page[0] == 3 * PAGE_BYTES && on_host.kv.page[0] == 5 * PAGE_BYTES);
    CU_ASSERT_EQUAL(cake_memory_plan_buffer_bytes(p, &p->plan, 0, 1),
                    on_gpu.fixed - on_gpu.tables + on_host.fixed - on_host.tables);
    CU_ASSERT_EQUAL(cake_memory_plan_overhead_bytes(p, 0, 1), on_gpu.fixed);
    int64_t slice = on_gpu.fixed;
    me.planning.gpu_layers = 8;
    on_gpu = cake_memory_plan_measure(p, &p->plan, 0, 1, &gpu);
    on_host = cake_memory_plan_measure(p, &p->plan, 0, 1, &cake_kernels_ref);
    CU_ASSERT(on_gpu.kv.page[0] == 8 * PAGE_BYTES && on_host.kv.page[0] == 0 && on_host.tables == 0);
    CU_ASSERT_EQUAL(on_gpu.fixed, slice + (int64_t)(cake_logits_bytes(config, &gpu, 3, 1) +
                                                    cake_engine_device_bytes(config, &p->shape)));
    CU_ASSERT_EQUAL(on_host.fixed, (int64_t)(cake_engine_bytes(config, &p->shape, 1) +
                                             cake_logits_host_bytes(config, 3, 1)));
    close_world(&me);
}

static void test_batch_limits(void)
{
    cake_rank me;
    open_tiny(&me, 3, 0);
    cake_schedule_shape *shape = &me.planning.shape;
    set_plan(&me, 1, 1, (cake_hop[]){{0, 0, 8}});
    cake_memory_plan_batch_limits(&me.planning, 0);
    CU_ASSERT(shape->n_lane == 1 && shape->lane_seqs == 64 && shape->max_row == 512);
    CU_ASSERT(shape->n_saved == 0 && !shape->states && shape->n_kv_group == 1);
    /* A header of 24 bytes, rows and changes of 24 each: 2 for each row and 4 for each sequence; the body. */
    CU_ASSERT_EQUAL(me.planning.wave_bytes, 24 + 24 * (512 + 2 * 512 + 4 * 64) + 40 + 512 * 64 * 4);
    cake_memory_plan_batch_limits(&me.planning, 5);
    CU_ASSERT(shape->n_lane == 1 && shape->lane_seqs == 5);
    me.input.max_seqs = 17; /* as requested, whatever memory there is */
    cake_memory_plan_batch_limits(&me.planning, 5);
    CU_ASSERT(shape->lane_seqs == 17);
    me.input.max_seqs = 0;

    set_plan(&me, 3, 3, (cake_hop[]){{0, 0, 3}, {1, 3, 3}, {2, 6, 2}});
    cake_memory_plan_batch_limits(&me.planning, 0);
    CU_ASSERT_EQUAL(shape->n_lane, 3);
    me.planning.max_hops = 5; /* of another replica */
    cake_memory_plan_batch_limits(&me.planning, 0);
    CU_ASSERT_EQUAL(shape->n_lane, 5);
    me.planning.max_hops = 8;
    cake_memory_plan_batch_limits(&me.planning, 0);
    CU_ASSERT_EQUAL(shape->n_lane, 6);
    close_world(&me);
}

/* Of states one for each 8 sequences is saved, at most 8. */
static void test_saved(void)
{
    static const int seqs[] = {1, 8, 9, 56, 57, 64}, saved[] = {1, 1, 2, 7, 8, 8};
    cake_rank me;
    open_world(&me, DELTA, 1, 0);
    set_plan(&me, 1, 1, (cake_hop[]){{0, 0, 8}});
    for (size_t i = 0; i < sizeof seqs / sizeof *seqs; i++) {
        cake_memory_plan_batch_limits(&me.planning, seqs[i]);
        CU_ASSERT(me.planning.shape.states && me.planning.shape.lane_seqs == seqs[i]);
        CU_ASSERT_EQUAL(me.planning.shape.n_saved, saved[i]);
    }
    me.input.max_seqs = 500;
    cake_memory_plan_batch_limits(&me.planning, 0);
    CU_ASSERT(me.planning.shape.lane_seqs == 500 && me.planning.shape.n_saved == 8);
    close_world(&me);
}

int main(void)
{
    static const suite_test tests[] = {
        {"bytes of the cache", test_cache_bytes},
        {"pages and states of layers", test_layers},
        {"sequences whose states fit", test_fit_seqs},
        {"pages that fit", test_fit_pages},
        {"sliding windows", test_windows},
        {"pages of a cache in int8", test_int8_cache},
        {"the longest sequence", test_max_positions},
        {"what a dense model takes", test_dense},
        {"its weights", test_weights},
        {"what a model with delta nets takes", test_delta},
        {"GPU and host", test_gpu},
        {"lanes, sequences and waves", test_batch_limits},
        {"saved states", test_saved},
    };
    return SUITE_MAIN("memory_plan", tests);
}
