/* SPDX-License-Identifier: Apache-2.0 */
#include "place/plan.h"

#include "base/wave.h"
#include "suite.h"

/* Cost of the slowest stage of a plan. */
static double slowest(const cake_plan *plan, double layer, double root)
{
    double most = 0;
    for (int i = 0; i < plan->n_hop; i++) {
        double cost = plan->hop[i].count * layer + (plan->hop[i].rank == 0 ? root : 0);
        most = cost > most ? cost : most;
    }
    return most;
}

/* The best there is, by trying every number of layers for rank 0 and spreading the rest. */
static double best(int n_rank, int n_layer, double layer, double root)
{
    double least = 1e300;
    for (int own = 1; own <= n_layer - (n_rank - 1); own++) {
        if (n_rank == 1 && own < n_layer)
            continue;
        int others = n_rank > 1 ? (n_layer - own + n_rank - 2) / (n_rank - 1) : 0;
        double cost = own * layer + root;
        cost = others * layer > cost ? others * layer : cost;
        least = cost < least ? cost : least;
    }
    return least;
}

static void test_every_layer_once(void)
{
    for (int n_layer = 1; n_layer <= 40; n_layer++)
        for (int n_rank = 1; n_rank <= n_layer; n_rank++)
            for (double root = 0; root <= 12; root += 1.5) {
                cake_plan plan;
                cake_plan_make(n_rank, n_layer, 1, root, &plan);
                int next = 0;
                CU_ASSERT_EQUAL(plan.n_hop, n_rank);
                for (int i = 0; i < plan.n_hop; i++) {
                    CU_ASSERT(plan.hop[i].first == next && plan.hop[i].count >= 1 && plan.hop[i].rank == i);
                    next += plan.hop[i].count;
                }
                CU_ASSERT_EQUAL(next, n_layer);
                CU_ASSERT(slowest(&plan, 1, root) <= best(n_rank, n_layer, 1, root));
                cake_plan_free(&plan);
            }
}

static void test_load(void)
{
    cake_load load = {.n_hop = 4, .n_vocab = 2048};
    cake_load_decide(&load);
    CU_ASSERT(load.n_lane == 4 && load.lane_seqs == 64 && load.chunk == 128 && load.max_tok == 128);
    for (int n_hop = 1, before = 512; n_hop <= 64; n_hop++) { /* the more stages, the smaller the waves */
        load = (cake_load){.n_hop = n_hop, .n_vocab = 2048};
        cake_load_decide(&load);
        CU_ASSERT(load.chunk <= before && load.chunk >= CAKE_PAGE && load.chunk % CAKE_PAGE == 0);
        CU_ASSERT(n_hop > 1 || load.chunk == 512);
        before = load.chunk;
    }
    load = (cake_load){.n_hop = 2, .n_vocab = 1 << 24};
    cake_load_decide(&load); /* scores of one sequence fill 64 MiB */
    CU_ASSERT(load.lane_seqs == 1);
    load = (cake_load){.n_hop = 3, .n_vocab = 100, .max_seqs = 1, .chunk = 1};
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
        {"every layer once, in order, the slowest stage as fast as can be", test_every_layer_once},
        {"the size of waves", test_load},
        {"the number of pages", test_pages},
    };
    return SUITE_MAIN("plan", tests);
}
