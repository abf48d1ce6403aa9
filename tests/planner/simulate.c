/* SPDX-License-Identifier: Apache-2.0
 *
 * Simulated times of pipelines against times computed by hand; every row is counted once.
 */
#include "planner/simulate.h"

#include <math.h>
#include <string.h>

#include "tests/suite.h"

/* Hops of constant cost; rows and scores are counted. */
typedef struct fixed {
    double hop[4], root;
    int64_t rows, scores, waves;
    int n; /* requests */
} fixed;

static void wave(void *self, const cake_batch *batch, const int *request)
{
    fixed *f = self;
    for (int i = 0; i < batch->n_row; i++)
        CU_ASSERT(request[batch->rows[i].slot] >= 0 && request[batch->rows[i].slot] < f->n);
    f->rows += batch->n_row;
    f->scores += batch->n_score;
    f->waves++;
}

static double hop(void *self, int i)
{
    return ((fixed *)self)->hop[i];
}

static double root(void *self, const cake_batch *batch)
{
    (void)batch;
    return ((fixed *)self)->root;
}

static cake_schedule_shape shape_of(int n_lane, int lane_seqs, int pages)
{
    return (cake_schedule_shape){.n_lane = n_lane,
                                 .lane_seqs = lane_seqs,
                                 .chunk = 128,
                                 .max_row = 256,
                                 .n_kv_group = 1,
                                 .n_page = {pages}};
}

static double run(fixed *f, const cake_plan *plan, const cake_schedule_shape *shape, int n,
                  const cake_sim_request *requests, double *busy)
{
    int64_t waves;
    cake_simulation simulation = {.plan = plan,
                                  .shape = shape,
                                  .n = n,
                                  .request = requests,
                                  .self = f,
                                  .wave = wave,
                                  .hop = hop,
                                  .root = root};
    f->n = n;
    f->rows = f->scores = f->waves = 0;
    double seconds = cake_simulate(&simulation, busy, &waves);
    CU_ASSERT_EQUAL(waves, f->waves);
    return seconds;
}

/* One answer: nothing overlaps. */
static void test_one(void)
{
    cake_hop hops[] = {{1, 0, 2}, {0, 2, 1}, {2, 3, 3}};
    cake_plan plan = {.hop = hops, .n_hop = 3, .n_rank = 3};
    cake_schedule_shape shape = shape_of(3, 4, 100);
    cake_sim_request one = {.n_prompt = 30, .n_generated = 7};
    fixed f = {.hop = {2, 3, 5}, .root = 1};
    double busy[3];
    CU_ASSERT_DOUBLE_EQUAL(run(&f, &plan, &shape, 1, &one, busy), 7 * 11, 1e-9);
    CU_ASSERT(f.waves == 7 && f.rows == 36 && f.scores == 7);
    CU_ASSERT(busy[0] == 7 * 4 && busy[1] == 7 * 2 && busy[2] == 7 * 5);
    one.n_generated = 1;
    CU_ASSERT_DOUBLE_EQUAL(run(&f, &plan, &shape, 1, &one, busy), 11, 1e-9);
}

/* Many sequences: the slowest rank is hardly idle, and no rank works longer than the run takes. */
static void test_many(void)
{
    enum { N = 200 };
    static cake_sim_request requests[N];
    cake_hop hops[] = {{0, 0, 1}, {1, 1, 1}, {2, 2, 1}};
    cake_plan plan = {.hop = hops, .n_hop = 3, .n_rank = 3};
    int64_t rows = 0, generated = 0;
    for (int i = 0; i < N; i++) {
        requests[i] = (cake_sim_request){.n_prompt = 1 + i * 37 % 300, .n_generated = 1 + i * 11 % 40};
        rows += requests[i].n_prompt + requests[i].n_generated - 1;
        generated += requests[i].n_generated;
    }
    for (int slow = 0; slow < 3; slow++)
        for (int few = 0; few < 2; few++) {
            cake_schedule_shape shape = shape_of(3, 16, few ? 60 : 4000);
            fixed f = {.hop = {1, 1, 1}, .root = 0.25};
            double busy[3];
            f.hop[slow] = 2;
            double seconds = run(&f, &plan, &shape, N, requests, busy);
            for (int rank = 0; rank < 3; rank++)
                CU_ASSERT_DOUBLE_EQUAL(busy[rank], (double)f.waves * (f.hop[rank] + (rank ? 0 : 0.25)), 1e-6);
            CU_ASSERT(busy[slow] <= seconds && busy[slow] > 0.85 * seconds);
            CU_ASSERT(f.scores == generated && (few ? f.rows >= rows : f.rows == rows));
        }
}

/* Scores of prompts are no tokens; what outgrows all memory ends. */
static void test_odd(void)
{
    cake_hop hops[] = {{0, 0, 1}};
    cake_plan plan = {.hop = hops, .n_hop = 1, .n_rank = 1};
    cake_schedule_shape shape = shape_of(1, 4, 3);
    cake_sim_request requests[] = {{.n_prompt = 70, .n_generated = 2, .score_from = 1},
                                   {.n_prompt = 10, .n_generated = 1000},
                                   {.n_prompt = 10, .n_generated = 3}};
    fixed f = {.hop = {1}, .root = 0};
    CU_ASSERT(run(&f, &plan, &shape, 1, requests, NULL) > 0);
    CU_ASSERT(f.scores == 70 + 1 && f.rows == 71);
    CU_ASSERT(run(&f, &plan, &shape, 3, requests, NULL) > 150);
    CU_ASSERT_EQUAL(run(&f, &plan, &shape, 0, requests, NULL), 0);
}

int main(void)
{
    static const suite_test tests[] = {
        {"one answer", test_one},
        {"many answers", test_many},
        {"scores of prompts, answers that end for want of pages", test_odd},
    };
    return SUITE_MAIN("predict", tests);
}
