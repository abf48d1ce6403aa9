/* SPDX-License-Identifier: Apache-2.0 */
#include "place/plan.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/wave.h"
#include "suite.h"

/* The least that the slowest stage can take, by trying every end of every slice: layers from `first` on for n_rank
 * ranks, each but rank 0 with one at least. */
static double best(int n_rank, int first, int n_layer, const double *layer, double root, const double *speed)
{
    double least = 1e300, run = root;
    for (int end = first; end <= n_layer - (n_rank - 1); end++) {
        if (end > first)
            run += layer[end - 1];
        if (run <= 0 || (n_rank == 1 && end < n_layer))
            continue;
        double rest = n_rank > 1 ? best(n_rank - 1, end, n_layer, layer, 0, speed + 1) : 0;
        double cost = run / *speed > rest ? run / *speed : rest;
        least = cost < least ? cost : least;
    }
    return least;
}

/* Layers in order, one at least for each rank but rank 0, whatever they cost; and what the slowest stage takes. */
static double check_plan(int n_rank, int n_layer, const double *layer, double root, const double *speed)
{
    cake_plan plan;
    cake_plan_make(n_rank, n_layer, layer, root, speed, &plan);
    int next = 0, rank = plan.hop[0].rank;
    double most = speed ? root / speed[0] : root;
    CU_ASSERT(plan.n_rank == n_rank && plan.n_hop == n_rank - rank && rank <= (root > 0 && n_rank > 1));
    for (int i = 0; i < plan.n_hop; i++) {
        const cake_hop *hop = &plan.hop[i];
        double run = hop->rank ? 0 : root;
        CU_ASSERT(hop->first == next && hop->count >= 1 && hop->rank == rank + i);
        for (; next < hop->first + hop->count; next++)
            run += layer[next];
        run = speed ? run / speed[hop->rank] : run;
        most = run > most ? run : most;
    }
    CU_ASSERT_EQUAL(next, n_layer);
    CU_ASSERT_EQUAL(cake_plan_cost(&plan, layer, root, speed), most);
    cake_plan_free(&plan);
    return most;
}

static const double ones[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

/* Layers of two kinds, as those of attention and of delta nets; costs are whole numbers, so that sums are exact. */
static void test_best(void)
{
    for (int n_layer = 1; n_layer <= 12; n_layer++)
        for (int n_rank = 1; n_rank <= n_layer; n_rank++)
            for (int round = 0; round < 18; round++) {
                double layer[12], root = round % 6 * 3;
                for (int i = 0; i < n_layer; i++)
                    layer[i] = round < 6 ? 2 : i % (round / 6 + 1) ? 3 : 5;
                CU_ASSERT_EQUAL(check_plan(n_rank, n_layer, layer, root, NULL),
                                best(n_rank, 0, n_layer, layer, root, ones));
            }
}

/* Layers of any cost, ranks of any speed, powers of two: exact, too. */
static void test_speeds(void)
{
    uint32_t dice = 1;
    for (int round = 0; round < 5000; round++) {
        double layer[10], speed[6], root;
        int n_layer = 1 + (int)((dice = dice * 1664525u + 1013904223u) >> 16) % 10;
        int n_rank = 1 + (int)((dice = dice * 1664525u + 1013904223u) >> 16) % (n_layer < 6 ? n_layer : 6);
        int kinds = 1 + round % 4;
        for (int i = 0; i < n_layer; i++)
            layer[i] = 1 + ((dice = dice * 1664525u + 1013904223u) >> 16) % (round % 3 ? 40 : 2);
        for (int i = 0; i < n_rank; i++)
            speed[i] = 1.0 / (1 << ((dice = dice * 1664525u + 1013904223u) >> 16) % (uint32_t)kinds);
        root = ((dice = dice * 1664525u + 1013904223u) >> 16) % (round % 2 ? 100 : 5);
        CU_ASSERT_EQUAL(check_plan(n_rank, n_layer, layer, root, speed),
                        best(n_rank, 0, n_layer, layer, root, speed));
    }
}

/* Stages that could do less than the slowest are even, too: what they hold and compute is. */
static void test_even(void)
{
    double layer[126];
    for (int i = 0; i < 126; i++)
        layer[i] = 1;
    for (int n_rank = 1; n_rank <= 126; n_rank++) {
        cake_plan plan;
        cake_plan_make(n_rank, 126, layer, 0.5, NULL, &plan);
        for (int i = 1; i < plan.n_hop; i++)
            CU_ASSERT(plan.hop[i].rank == 0 || abs(plan.hop[i].count - 126 / n_rank) <= 1);
        cake_plan_free(&plan);
    }
}

/* A head of ten layers, of which a quarter of the rows is scored. */
static void test_root(void)
{
    double layer[28];
    cake_plan plan;
    for (int i = 0; i < 28; i++)
        layer[i] = 1;
    cake_plan_make(2, 28, layer, 2.5, NULL, &plan);
    CU_ASSERT(plan.hop[0].count == 13 && plan.hop[1].count == 15);
    cake_plan_free(&plan);
    cake_plan_make(2, 28, layer, 2.5, (double[]){0.5, 1}, &plan); /* half as fast, less than half of it */
    CU_ASSERT(plan.hop[0].count == 8 && plan.hop[1].count == 20);
    cake_plan_free(&plan);
    cake_plan_make(16, 28, layer, 2.5, NULL, &plan);
    CU_ASSERT(plan.n_hop == 15 && plan.hop[0].rank == 1 && cake_plan_cost(&plan, layer, 2.5, NULL) == 2.5);
    cake_plan_free(&plan);
}

/* As large as they get: every rank one of a thousand layers, or so. */
static void test_large(void)
{
    enum { MOST = 1024 };
    static double layer[MOST], speed[MOST];
    for (int i = 0; i < MOST; i++) {
        layer[i] = 1 + i % 3;
        speed[i] = 1.0 / (1 + i % 2);
    }
    double start = cake_clock_now();
    check_plan(126, 126, layer, 10, speed);
    check_plan(64, 126, layer, 10, speed);
    check_plan(512, MOST, layer, 10, speed);
    CU_ASSERT(cake_clock_now() - start < 1);
}

static void test_load(void)
{
    cake_load load = {.n_stage = 4, .n_vocab = 2048};
    cake_load_decide(&load);
    CU_ASSERT(load.n_lane == 4 && load.lane_seqs == 64 && load.chunk == 128 && load.max_tok == 128);
    for (int n_stage = 1, before = 512; n_stage <= 64;
         n_stage++) { /* the more stages, the smaller the waves */
        load = (cake_load){.n_stage = n_stage, .n_vocab = 2048};
        cake_load_decide(&load);
        CU_ASSERT(load.chunk <= before && load.chunk >= CAKE_PAGE && load.chunk % CAKE_PAGE == 0);
        CU_ASSERT(n_stage > 1 || load.chunk == 512);
        before = load.chunk;
    }
    load = (cake_load){.n_stage = 2, .n_vocab = 1 << 24};
    cake_load_decide(&load); /* scores of one sequence fill 64 MiB */
    CU_ASSERT(load.lane_seqs == 1);
    load = (cake_load){.n_stage = 2, .n_vocab = 2048, .dearest = 1.25};
    cake_load_decide(&load); /* where rows are dear, waves of cheap ones are wide ... */
    CU_ASSERT(load.chunk == 256 && load.max_tok == 320);
    load = (cake_load){.n_stage = 2, .n_vocab = 2048, .dearest = 40};
    cake_load_decide(&load); /* ... to an extent ... */
    CU_ASSERT(load.chunk == 256 && load.max_tok == 512);
    load = (cake_load){.n_stage = 2, .n_vocab = 2048, .dearest = 40, .chunk = 192};
    cake_load_decide(&load); /* ... and not if the user says how wide they are */
    CU_ASSERT(load.chunk == 192 && load.max_tok == 192);
    load = (cake_load){.n_stage = 3, .n_vocab = 100, .max_seqs = 1, .chunk = 1};
    cake_load_decide(&load);
    CU_ASSERT(load.n_lane == 1 && load.lane_seqs == 1 && load.max_tok == 1 + CAKE_PAGE);
}

static void test_pages(void)
{
    int64_t one[] = {100}, two[] = {100, 10};
    CU_ASSERT_EQUAL(cake_plan_pages(1, one, (int[]){1000}, 850), 8);
    CU_ASSERT_EQUAL(cake_plan_pages(1, one, (int[]){1000}, 99), 0);
    CU_ASSERT_EQUAL(cake_plan_pages(1, one, (int[]){12}, INT64_MAX), 12); /* more could not be used */
    CU_ASSERT_EQUAL(cake_plan_pages(2, two, (int[]){1000, 5}, 1050), 10); /* 10 of one, all 5 of the other */
    CU_ASSERT_EQUAL(cake_plan_pages(2, two, (int[]){1000, 5}, 1049), 9);
    int vast[] = {INT32_MAX, INT32_MAX};
    CU_ASSERT_EQUAL(cake_plan_pages(1, one, vast, 850), 8);
    CU_ASSERT_EQUAL(cake_plan_pages(1, one, vast, INT64_MAX), INT32_MAX);
    CU_ASSERT_EQUAL(cake_plan_pages(2, (int64_t[]){INT64_MAX / 8, 1}, vast, INT64_MAX - 1), 7);
    CU_ASSERT_EQUAL(cake_plan_pages(1, (int64_t[]){0}, (int[]){7}, 0), 7); /* none of its layers here */
}

int main(void)
{
    static const suite_test tests[] = {
        {"every layer once, in order, the slowest stage as fast as can be", test_best},
        {"stages are even", test_even},
        {"rank 0 has fewer layers, or none", test_root},
        {"ranks of any speed", test_speeds},
        {"many ranks and layers", test_large},
        {"the size of waves", test_load},
        {"the number of pages", test_pages},
    };
    return SUITE_MAIN("plan", tests);
}
