/* SPDX-License-Identifier: Apache-2.0
 *
 * Seconds of a wave computed by hand, and what must hold of the time of whole runs.
 */
#include "planner/estimate.h"

#include <math.h>

#include "planner/memory_plan.h"
#include "planner/offload.h"
#include "tests/planner/world.h"

/* "tiny": operations of a row in 8 layers, of its attention for each visible position, of its scores with 16
 * for each to sample; bytes of the weights and of K and V of a position. */
#define ROW      (8 * 2.0 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 128 * 64))
#define POSITION (8 * 4.0 * 4 * 16)
#define SCORE    ((2.0 * 64 + 16) * 512)
#define WEIGHTS  (8.0 * (2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 128 * 64) + 4 * (64 + 64 + 16 + 16)))
#define HEAD     (2.0 * 512 * 64 + 4 * 64)
#define KV       (8 * 2.0 * 2 * 16 * 2)
#define OVERHEAD (8 * 40e-6)
#define ENDLESS  1e30

/* A world of n ranks of these rates; each is a replica. */
static void open_replicas(cake_rank *me, int n, double flops, double bytes)
{
    open_tiny(me, n, 1 << 30);
    for (int i = 0; i < n; i++) {
        me->cluster.rate[i].flops = flops;
        me->cluster.rate[i].bytes = bytes;
    }
    set_plan(me, 1, 1, (cake_hop[]){{0, 0, 8}});
    cake_memory_plan_batch_limits(&me->planning, 0);
    cake_memory_plan_set_pages(&me->planning, 4 * 64);
    me->planning.n_replica = n;
}

static double seconds_of(const cake_rank *me, int64_t n, int prompt, int generated)
{
    cake_plan plans[2] = {me->planning.plan, me->planning.plan};
    cake_workload workload = {0};
    plans[1].first = 1;
    for (int64_t i = 0; i < n; i++)
        cake_workload_add(&workload, &(cake_workload_item){.n_prompt = prompt,
                                                           .computed = prompt,
                                                           .min_generated = 1,
                                                           .max_generated = generated});
    cake_estimate e = cake_estimate_make(&me->planning, plans, &workload, true, NULL, NULL);
    CU_ASSERT_EQUAL(e.generated, (double)(n * generated));
    cake_workload_free(&workload);
    return e.seconds;
}

static void expect(double seconds, double wanted)
{
    CU_ASSERT_DOUBLE_EQUAL(seconds, wanted, 1e-9 * wanted);
    if (fabs(seconds - wanted) > 1e-9 * wanted)
        printf("\n    %.12g s, expected %.12g", seconds, wanted);
}

/* Ten rows see 55 positions, and one of them is scored. The second wave has one row that sees 11. */
static void test_wave(void)
{
    const double flops = 1e9, bytes = 1e8;
    cake_rank me;
    open_replicas(&me, 1, flops, ENDLESS);
    double prompt = (10 * ROW / 0.84 + 55 * POSITION / 0.62 + SCORE / 0.84) / flops + OVERHEAD;
    double answer = (ROW / 0.84 + 11 * POSITION / 0.62 + SCORE / 0.84) / flops + OVERHEAD;
    expect(seconds_of(&me, 1, 10, 1), prompt);
    expect(seconds_of(&me, 1, 10, 2), prompt + answer);
    close_world(&me);

    open_replicas(&me, 1, ENDLESS, bytes);
    double read = (WEIGHTS + HEAD) / 0.85 / bytes + OVERHEAD;
    expect(seconds_of(&me, 1, 10, 1), read);
    expect(seconds_of(&me, 1, 10, 2), 2 * read + 11 * KV / 0.70 / bytes);
    close_world(&me);

    open_replicas(&me, 1, flops, bytes);
    expect(seconds_of(&me, 1, 10, 1), hypot(10 * ROW / 0.84 / flops, WEIGHTS / 0.85 / bytes) +
                                          55 * POSITION / 0.62 / flops +
                                          hypot(SCORE / 0.84 / flops, HEAD / 0.85 / bytes) + OVERHEAD);
    close_world(&me);
}

/* Half of the weights is read for each wave: reading takes the threads' time, or the disk's if that is
 * longer. */
static void test_reading(void)
{
    const double flops = 1e9;
    cake_rank me;
    open_replicas(&me, 1, flops, ENDLESS);
    const double held = cake_estimate_wave(&me.planning, &me.planning.plan, 10, true);
    me.input.weights_memory = -60;
    me.input.pack_rate = 1e6;
    cake_weight_split split;
    cake_offload_split(&me.planning, &me.planning.plan, 0, &split);
    const double bytes = (double)split.wave_bytes;
    cake_weight_split_free(&split);
    CU_ASSERT(bytes > 0.3 * WEIGHTS && bytes < 0.8 * WEIGHTS);
    expect(cake_estimate_wave(&me.planning, &me.planning.plan, 10, true), held + bytes / 1e6);
    expect(seconds_of(&me, 1, 10, 1),
           (10 * ROW / 0.84 + 55 * POSITION / 0.62 + SCORE / 0.84) / flops + OVERHEAD + bytes / 1e6);
    me.input.read_rate = 1e3;
    expect(cake_estimate_wave(&me.planning, &me.planning.plan, 10, true), bytes / 1e3 + SCORE / 0.84 / flops);
    me.input.weights_memory = -100; /* everything is held after all */
    expect(cake_estimate_wave(&me.planning, &me.planning.plan, 10, true), held);
    close_world(&me);
}

/* Longer prompts, longer answers and more of them take longer; faster ranks take less. */
static void test_monotone(void)
{
    double before = 0;
    cake_rank me, fast;
    open_replicas(&me, 1, 1e9, 1e8);
    open_replicas(&fast, 1, 2e9, 1e8);
    for (int prompt = 1; prompt <= 200; prompt += 7) {
        double seconds = seconds_of(&me, 1, prompt, 1);
        CU_ASSERT(seconds > before && seconds_of(&fast, 1, prompt, 1) < seconds);
        before = seconds;
    }
    before = 0;
    for (int generated = 1; generated <= 50; generated++) {
        double seconds = seconds_of(&me, 1, 20, generated);
        CU_ASSERT(seconds > before);
        before = seconds;
    }
    before = 0;
    for (int64_t n = 1; n <= 300; n += 23) {
        double seconds = seconds_of(&me, n, 20, 20);
        CU_ASSERT(seconds > before);
        before = seconds;
    }
    close_world(&me);
    close_world(&fast);
}

/* Two equal replicas share the requests; where one is faster, it takes more of them. */
static void test_replicas(void)
{
    cake_rank one, two;
    open_replicas(&one, 1, 1e9, 1e8);
    open_replicas(&two, 2, 1e9, 1e8);
    double alone = seconds_of(&one, 100, 20, 20);
    expect(seconds_of(&two, 200, 20, 20), alone);
    expect(seconds_of(&two, 1, 20, 20), seconds_of(&one, 1, 20, 20));
    two.cluster.rate[1].flops *= 3;
    two.cluster.rate[1].bytes *= 3;
    double seconds = seconds_of(&two, 200, 20, 20);
    CU_ASSERT(seconds < 0.75 * alone && seconds > 0.4 * alone);
    close_world(&one);
    close_world(&two);
}

/* Beyond 2048 requests the rest is extrapolated: each takes as long as one of the second half. */
static void test_many(void)
{
    cake_rank me;
    open_replicas(&me, 1, 1e9, 1e8);
    double some = seconds_of(&me, 2048, 8, 4);
    double more = seconds_of(&me, 4096, 8, 4);
    CU_ASSERT_DOUBLE_EQUAL(more, 2 * some, 0.02 * some);
    close_world(&me);
}

int main(void)
{
    static const suite_test tests[] = {
        {"seconds of waves", test_wave},
        {"weights that are read for each wave", test_reading},
        {"more work, more time", test_monotone},
        {"replicas", test_replicas},
        {"more requests than are simulated", test_many},
    };
    return SUITE_MAIN("estimate", tests);
}
