/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/plan.h"

#include <stdbool.h>
#include <stdlib.h>

#include "tests/suite.h"
#include "types/wave.h"

static uint32_t dice = 1;

static int throw(int sides)
{
    return (int)((dice = dice * 1664525u + 1013904223u) >> 16) % sides;
}

/* The least that the slowest stage can take, by trying every end of every slice: layers from `first` on for
 * n_rank ranks, each but rank 0 with one at least. */
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

/* Layers in order, one at least for each rank but rank 0, whatever they cost; and what the slowest stage
 * takes. */
static double check_plan(int n_rank, int n_layer, const double *layer, double root, const double *speed)
{
    cake_plan plan;
    cake_partition_input cut = {
        .n_rank = n_rank, .n_layer = n_layer, .layer = layer, .root = root, .speed = speed};
    CU_ASSERT_FATAL(cake_plan_partition(&cut, &plan));
    CU_ASSERT(plan.steps <= (int64_t)n_rank * (n_layer + 1) * (n_layer + 2));
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
    CU_ASSERT_EQUAL(cake_plan_cost(&plan, &cut), most);
    cake_plan_free(&plan);
    return most;
}

static const double ones[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

/* Layers of two kinds, as those of attention and of delta nets; costs are whole numbers, so that sums are
 * exact. */
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
    for (int round = 0; round < 5000; round++) {
        double layer[10], speed[6], root;
        int n_layer = 1 + throw(10), n_rank = 1 + throw(n_layer < 6 ? n_layer : 6), kinds = 1 + round % 4;
        for (int i = 0; i < n_layer; i++)
            layer[i] = 1 + throw(round % 3 ? 40 : 2);
        for (int i = 0; i < n_rank; i++)
            speed[i] = 1.0 / (1 << throw(kinds));
        root = throw(round % 2 ? 100 : 5);
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
        cake_partition_input cut = {.n_rank = n_rank, .n_layer = 126, .layer = layer, .root = 0.5};
        CU_ASSERT_FATAL(cake_plan_partition(&cut, &plan));
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
    cake_partition_input cut = {.n_rank = 2, .n_layer = 28, .layer = layer, .root = 2.5};
    for (int i = 0; i < 28; i++)
        layer[i] = 1;
    cake_plan_partition(&cut, &plan);
    CU_ASSERT(plan.hop[0].count == 13 && plan.hop[1].count == 15);
    cake_plan_free(&plan);
    cut.speed = (double[]){0.5, 1}; /* half as fast, less than half of it */
    cake_plan_partition(&cut, &plan);
    CU_ASSERT(plan.hop[0].count == 8 && plan.hop[1].count == 20);
    cake_plan_free(&plan);
    cut.n_rank = 16;
    cut.speed = NULL;
    cake_plan_partition(&cut, &plan);
    CU_ASSERT(plan.n_hop == 15 && plan.hop[0].rank == 1 && cake_plan_cost(&plan, &cut) == 2.5);
    cake_plan_free(&plan);
}

/* For slices with these ends [n_rank]: the most bytes that a pool lacks, and the time of the slowest rank. */
static int64_t lack_of(const cake_partition_input *c, const int *end)
{
    int64_t most = 0;
    for (int pool = 0, rank = 0, layer = 0; pool < c->n_pool; pool++) {
        int64_t left = c->pool[pool].bytes;
        rank += c->pool[pool].n_rank;
        for (; layer < end[rank - 1]; layer++)
            left -= c->bytes[layer];
        most = -left > most ? -left : most;
    }
    return most;
}

static double time_of(const cake_partition_input *c, const int *end)
{
    double most = 0;
    for (int rank = 0, layer = 0; rank < c->n_rank; rank++) {
        double run = rank ? 0 : c->root;
        for (; layer < end[rank]; layer++)
            run += c->layer[layer];
        run /= c->speed[rank];
        most = run > most ? run : most;
    }
    return most;
}

/* All ways to cut: the least that anything lacks, the best time of those that lack no more than `allowed`. */
static void try_all(const cake_partition_input *c, int rank, int *end, int64_t allowed, int64_t *lack,
                    double *time)
{
    int begin = rank ? end[rank - 1] : 0;
    if (rank == c->n_rank) {
        int64_t own = begin == c->n_layer ? lack_of(c, end) : INT64_MAX;
        *lack = own < *lack ? own : *lack;
        if (own <= allowed && time_of(c, end) < *time)
            *time = time_of(c, end);
        return;
    }
    for (end[rank] = begin + !(rank == 0 && c->root > 0); end[rank] <= c->n_layer; end[rank]++)
        try_all(c, rank + 1, end, allowed, lack, time);
}

/* The plan as ends of slices. */
static void ends_of(const cake_plan *plan, int *end)
{
    for (int rank = 0, hop = 0, last = 0; rank < plan->n_rank; rank++) {
        if (hop < plan->n_hop && plan->hop[hop].rank == rank) {
            CU_ASSERT(plan->hop[hop].first == last && plan->hop[hop].count > 0);
            last += plan->hop[hop++].count;
        }
        end[rank] = last;
    }
}

/* Memory of any size, alone and shared; some of it too small even for what is there without a layer. */
static void test_memory(void)
{
    enum { ROUNDS = 6000, MOST = 8 };
    int n_fit = 0, n_bound = 0, n_lack = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double layer[MOST], speed[MOST], time = 1e300, freely = 1e300;
        int64_t bytes[MOST], lack = INT64_MAX;
        cake_host_memory pool[MOST];
        int end[MOST], n_layer = 1 + throw(MOST), n_rank = 1 + throw(n_layer < 5 ? n_layer : 5),
                       generous = throw(30);
        cake_partition_input cut = {.n_rank = n_rank,
                                    .n_layer = n_layer,
                                    .layer = layer,
                                    .root = throw(3) ? throw(20) : 0,
                                    .speed = speed,
                                    .bytes = bytes,
                                    .pool = pool};
        for (int i = 0; i < n_layer; i++) {
            layer[i] = 1 + throw(round % 2 ? 20 : 2);
            bytes[i] = throw(round % 3 ? 9 : 2);
        }
        for (int i = 0, more; i < n_rank; i += more) {
            more = 1 + throw(n_rank - i);
            pool[cut.n_pool++] = (cake_host_memory){more, throw(6 + more * generous) - 2};
        }
        for (int i = 0; i < n_rank; i++)
            speed[i] = 1.0 / (1 << throw(3));
        try_all(&cut, 0, end, INT64_MAX, &lack, &freely);
        try_all(&cut, 0, end, lack, &lack, &time);
        cake_plan plan;
        bool fits = cake_plan_partition(&cut, &plan);
        CU_ASSERT_EQUAL(fits, lack == 0);
        if (!fits)
            CU_ASSERT_EQUAL(cake_plan_deficit(&cut, &plan), lack);
        ends_of(&plan, end);
        CU_ASSERT_EQUAL(end[n_rank - 1], n_layer);
        CU_ASSERT_EQUAL(lack_of(&cut, end), lack);
        CU_ASSERT_EQUAL(time_of(&cut, end), time);
        n_fit += fits;
        n_lack += !fits;
        n_bound += fits && time > freely;
        cake_plan_free(&plan);
    }
    CU_ASSERT(n_fit > ROUNDS / 5 && n_lack > ROUNDS / 5 && n_bound > ROUNDS / 20);
}

/* Two hosts: one fast with little memory, one slow with a lot of it. */
static void test_little_memory(void)
{
    double layer[32], speed[] = {1, 1, 0.25, 0.25};
    int64_t bytes[32];
    cake_plan plan;
    for (int i = 0; i < 32; i++) {
        layer[i] = 1;
        bytes[i] = 10;
    }
    cake_host_memory pool[] = {{2, 1000}, {2, 1000}};
    cake_partition_input cut = {.n_rank = 4,
                                .n_layer = 32,
                                .layer = layer,
                                .speed = speed,
                                .bytes = bytes,
                                .pool = pool,
                                .n_pool = 2};
    CU_ASSERT_FATAL(cake_plan_partition(&cut, &plan));
    CU_ASSERT(plan.hop[0].count == 13 && plan.hop[1].count == 13 && plan.hop[2].count == 3);
    cake_plan_free(&plan);
    pool[0].bytes = 165; /* room for 16 layers on both of its ranks, in whatever way they share them */
    CU_ASSERT_FATAL(cake_plan_partition(&cut, &plan));
    CU_ASSERT(plan.hop[0].count + plan.hop[1].count == 16 && plan.hop[2].count == 8 &&
              plan.hop[3].count == 8);
    cake_plan_free(&plan);
    pool[1].bytes = 150; /* one layer is in no place */
    CU_ASSERT(!cake_plan_partition(&cut, &plan));
    CU_ASSERT_EQUAL(cake_plan_deficit(&cut, &plan), 5); /* which would be the first host's */
    CU_ASSERT(plan.hop[0].count + plan.hop[1].count == 17);
    cake_plan_free(&plan);
}

/* As large as they get: 126 layers on as many ranks, 16 a host, whose memory ends slices all along. What it
 * takes is counted, since a clock would tell of the machine. */
static void test_large(void)
{
    enum { MOST = 126 };
    double layer[MOST], speed[MOST];
    int64_t bytes[MOST];
    cake_host_memory pool[MOST];
    for (int i = 0; i < MOST; i++) {
        layer[i] = 1 + i % 3;
        speed[i] = 1.0 / (1 + i % 2);
        bytes[i] = 90 + i % 7;
    }
    check_plan(MOST, MOST, layer, 10, speed);
    check_plan(MOST / 2, MOST, layer, 10, speed);
    for (int each = 1; each <= 64; each *= 4)
        for (int n_rank = 2; n_rank <= MOST; n_rank += 31) {
            cake_partition_input cut = {.n_rank = n_rank,
                                        .n_layer = MOST,
                                        .layer = layer,
                                        .root = 10,
                                        .speed = speed,
                                        .bytes = bytes,
                                        .pool = pool};
            for (int i = 0; i < n_rank; i += each) {
                int n = n_rank - i < each ? n_rank - i : each;
                pool[cut.n_pool++] = (cake_host_memory){n, (int64_t)n * 200 * MOST / n_rank};
            }
            cake_plan plan;
            CU_ASSERT_FATAL(cake_plan_partition(&cut, &plan));
            CU_ASSERT(plan.steps < (each == 1 ? 2 * MOST * MOST + 4 * n_rank * MOST
                                              : 20000000)); /* a host of each rank's own is cheap */
            cake_plan_free(&plan);
        }
}

static void test_load(void)
{
    cake_batch_size load = {.n_stage = 4, .n_vocab = 2048};
    cake_batch_size_decide(&load);
    CU_ASSERT(load.n_lane == 4 && load.lane_seqs == 64 && load.chunk == 128 && load.max_row == 128);
    for (int n_stage = 1, before = 512; n_stage <= 64;
         n_stage++) { /* the more stages, the smaller the waves */
        load = (cake_batch_size){.n_stage = n_stage, .n_vocab = 2048};
        cake_batch_size_decide(&load);
        CU_ASSERT(load.chunk <= before && load.chunk >= CAKE_PAGE && load.chunk % CAKE_PAGE == 0);
        CU_ASSERT(n_stage > 1 || load.chunk == 512);
        before = load.chunk;
    }
    static const int gpu_chunks[] = {2048, 1024, 640, 512}; /* of as many stages, ... */
    for (int n_stage = 1; n_stage <= 4; n_stage++) {
        load = (cake_batch_size){.n_stage = n_stage, .n_vocab = 151936, .gpus = true};
        cake_batch_size_decide(&load);
        CU_ASSERT(load.lane_seqs == 512 && load.chunk == gpu_chunks[n_stage - 1] &&
                  load.max_row >= load.lane_seqs + CAKE_PAGE);
    }
    load = (cake_batch_size){.n_stage = 64, .n_vocab = 1 << 20, .gpus = true};
    cake_batch_size_decide(&load); /* ... and of many; scores of 128 sequences fill 512 MiB */
    CU_ASSERT(load.chunk == 256 && load.lane_seqs == 128);
    load = (cake_batch_size){.n_stage = 2, .n_vocab = 1 << 24};
    cake_batch_size_decide(&load); /* scores of one sequence fill 64 MiB */
    CU_ASSERT(load.lane_seqs == 1);
    load = (cake_batch_size){.n_stage = 2, .n_vocab = 2048, .max_row_cost = 1.25};
    cake_batch_size_decide(&load); /* where rows are dear, waves of cheap ones are wide ... */
    CU_ASSERT(load.chunk == 256 && load.max_row == 320);
    load = (cake_batch_size){.n_stage = 2, .n_vocab = 2048, .max_row_cost = 40};
    cake_batch_size_decide(&load); /* ... to an extent ... */
    CU_ASSERT(load.chunk == 256 && load.max_row == 512);
    load = (cake_batch_size){.n_stage = 2, .n_vocab = 2048, .max_row_cost = 40, .chunk = 192};
    cake_batch_size_decide(&load); /* ... and not if the user says how wide they are */
    CU_ASSERT(load.chunk == 192 && load.max_row == 192);
    load = (cake_batch_size){.n_stage = 4, .n_vocab = 2048, .reading_rows = 900};
    cake_batch_size_decide(&load); /* as many rows as are computed while weights are read ... */
    CU_ASSERT(load.chunk == 896 && load.lane_seqs == 900);
    load = (cake_batch_size){.n_stage = 1, .n_vocab = 2048, .reading_rows = 1e9};
    cake_batch_size_decide(&load); /* ... with limits ... */
    CU_ASSERT(load.chunk == 4096 && load.lane_seqs == 1024);
    load = (cake_batch_size){.n_stage = 1, .n_vocab = 2048, .reading_rows = 3};
    cake_batch_size_decide(&load); /* ... and not fewer than without */
    CU_ASSERT(load.chunk == 512 && load.lane_seqs == 64);
    load = (cake_batch_size){.n_stage = 3, .n_vocab = 100, .max_seqs = 1, .chunk = 1};
    cake_batch_size_decide(&load);
    CU_ASSERT(load.n_lane == 1 && load.lane_seqs == 1 && load.max_row == 1 + CAKE_PAGE);
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
        {"memory of any size: no other cut fits better", test_memory},
        {"a fast host with little memory", test_little_memory},
        {"many ranks and layers", test_large},
        {"the size of waves", test_load},
        {"the number of pages", test_pages},
    };
    return SUITE_MAIN("plan", tests);
}
