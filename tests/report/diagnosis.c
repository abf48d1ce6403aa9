/* SPDX-License-Identifier: Apache-2.0
 *
 * Metrics of possible runs, and the advice that they must produce.
 */
#include "report/diagnosis.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "report/report.h"
#include "tests/suite.h"

/* A run of ten seconds and a thousand waves of a hundred rows, in which three ranks of ten layers are busy
 * and even. */
static cake_rank_metrics ranks[3];
static cake_run_metrics even(void)
{
    for (int i = 0; i < 3; i++)
        ranks[i] = (cake_rank_metrics){
            .upstream = (i + 2) % 3, .n_layer = 10, .busy = 9.9, .layer = 9.5, .move = 0.1};
    return (cake_run_metrics){.rank = ranks,
                              .n_rank = 3,
                              .seconds = 10,
                              .reading = -1,
                              .waves = 1000,
                              .rows = 100000,
                              .embed = 0.01,
                              .head = 0.2,
                              .sample = 0.1,
                              .read = 0.05};
}

static void says(const cake_run_metrics *f, const char *text)
{
    cake_buf out = {0};
    cake_diagnosis_give(f, &out);
    if (!out.len || !strstr(out.data, text)) {
        printf("\n    \"%s\" has no \"%s\"\n", out.len ? out.data : "", text);
        CU_FAIL("the advice is another one");
    }
    CU_ASSERT(!memchr(out.data, '\n', out.len));
    cake_buf_free(&out);
}

static void waits(const cake_run_metrics *f, int rank, const char *text)
{
    cake_buf out = {0};
    cake_diagnosis_waits(f, rank, &out);
    CU_ASSERT_STRING_EQUAL(out.data, text);
    cake_buf_free(&out);
}

static void test_even(void)
{
    cake_run_metrics f = even();
    says(&f, "every rank was busy 99 % of the time");
    for (int i = 0; i < 3; i++)
        waits(&f, i, "-");
    CU_ASSERT_DOUBLE_EQUAL(cake_rank_metrics_idle(&f, 1), 0.01, 1e-12);
}

static void says_nothing(const cake_run_metrics *f)
{
    cake_buf out = {0};
    cake_diagnosis_give(f, &out);
    CU_ASSERT_EQUAL(out.len, 0);
    cake_buf_free(&out);
}

static void test_short(void)
{
    cake_run_metrics f = even();
    f.seconds = 0.2;
    says_nothing(&f);
    f.oversubscription = (cake_oversubscription){"vm", 2, 4, 2};
    says_nothing(&f);
    f = even();
    f.waves = 20;
    says_nothing(&f);
    f = (cake_run_metrics){.rank = ranks, .n_rank = 1, .reading = -1}; /* nothing ran at all */
    says_nothing(&f);
    waits(&f, 0, "-");
}

/* Ranks that share cpus wait for each other in messages, at the root and in layers: that is the cause. */
static void test_oversubscription(void)
{
    cake_run_metrics f = even();
    ranks[0].move = 5;
    ranks[0].layer = 2;
    f.head = 7;
    for (int i = 0; i < 3; i++)
        ranks[i].planned = i == 1 ? 5 : 10;
    f.oversubscription = (cake_oversubscription){"vm", 3, 6, 2};
    says(&f, "ranks of vm have 6 threads on 2 cpus and take turns: start fewer ranks, or use --threads");
    cake_buf out = {0};
    cake_diagnosis_late(&f, &out);
    CU_ASSERT_EQUAL(out.len, 0);
    cake_buf_free(&out);
    f.oversubscription = (cake_oversubscription){"vm", 1, 4, 1.5};
    says(&f, "the rank of vm has 4 threads on 1.5 cpus and takes turns: use --threads");
    f.oversubscription = (cake_oversubscription){0};
    says(&f, "messages take");
}

/* The summary of a run of so many seconds on n ranks, of a hundred waves each. */
static cake_buf summary_of(double seconds, int n, cake_level level, int oversubscribed)
{
    cake_report_stage stages[2] = {{.host = "vm", .threads = 1, .busy_s = seconds, .compute_s = seconds},
                                   {.host = "vm", .threads = 1, .busy_s = seconds, .compute_s = seconds}};
    cake_hop hops[2] = {{0, 0, 4}, {1, 4, 4}};
    cake_plan plan = {.hop = hops, .n_hop = n, .n_rank = n};
    cake_comm world = {.size = n};
    cake_report r = {
        .plans = &plan, .n_replica = 1, .n_layer = 8, .world = &world, .stages = stages, .run_s = seconds};
    cake_buf out = {0};
    stages[0].root.waves = 100;
    stages[0].sharing_ranks = stages[1].sharing_ranks = stages[0].sharing_threads = oversubscribed;
    stages[0].shared_cpus = 1;
    r.counts.done = 3;
    cake_level before = cake_log_level(level);
    cake_log_capture(&out);
    cake_report_say(&r);
    cake_log_capture(NULL);
    cake_log_level(before);
    cake_buf_addc(&out, 0);
    return out;
}

/* The table and the advice are for runs that are worth it, or for who asks; a table of one rank for the
 * latter only. */
static void test_findings(void)
{
    static const struct {
        double seconds;
        int n;
        cake_level level;
        int oversubscribed;
        bool table, advice;
    } rows[] = {
        {9.9, 2, CAKE_INFO, 0, false, false}, {10, 2, CAKE_INFO, 0, true, true},
        {10, 1, CAKE_INFO, 0, false, true},   {10, 1, CAKE_DEBUG, 0, true, true},
        {9.9, 2, CAKE_DEBUG, 0, true, true},  {0.1, 2, CAKE_DEBUG, 0, true, false},
        {10, 2, CAKE_INFO, 2, true, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cake_buf out = summary_of(rows[i].seconds, rows[i].n, rows[i].level, rows[i].oversubscribed);
        CU_ASSERT(strstr(out.data, "cake-mpi: 3 requests (0 failed)") == out.data);
        CU_ASSERT_EQUAL(strstr(out.data, "cake-mpi: rank  host") != NULL, rows[i].table);
        CU_ASSERT_EQUAL(strstr(out.data, "cake-mpi: advice: ") != NULL, rows[i].advice);
        CU_ASSERT_EQUAL(strstr(out.data, "ranks of vm have 2 threads on 1 cpu and") != NULL,
                        rows[i].oversubscribed > 0);
        cake_buf_free(&out);
    }
}

static void test_slowest(void)
{
    cake_run_metrics f = even();
    ranks[0].busy = ranks[2].busy = 6; /* of 21.9 seconds the second one has 9.9: 1.36 times the mean */
    ranks[0].layer = ranks[2].layer = 5.5;
    ranks[1].n_layer = 17;
    says(&f, "rank 1 is the slowest: 1.4 times the mean; give it fewer layers");
    waits(&f, 0, "rank 1");
    waits(&f, 2, "rank 1");
    waits(&f, 1, "-");
    ranks[1].n_layer = 10; /* as many as the others, in nearly twice the time */
    says(&f, "a layer takes 1.7 times as long there as on the others");
}

/* The expected time of a rank follows from the times of the others. */
static void test_late(void)
{
    cake_run_metrics f = even();
    cake_buf out = {0};
    cake_diagnosis_late(&f, &out);
    CU_ASSERT(!out.len && cake_rank_metrics_expected(&f, 1) == 0);
    for (int i = 0; i < 3; i++)
        ranks[i].planned = 10;
    ranks[1].planned = 8.5; /* 18 % slower */
    cake_diagnosis_late(&f, &out);
    CU_ASSERT(!out.len);
    ranks[1].planned = 5;
    CU_ASSERT_DOUBLE_EQUAL(cake_rank_metrics_expected(&f, 1), 4.75, 1e-9);
    cake_diagnosis_late(&f, &out);
    CU_ASSERT(out.len &&
              strstr(out.data,
                     "rank 1 is 100 % slower than planned: its layers took 9.50 ms per wave, at the speed of "
                     "the other ranks they would have taken 4.75"));
    cake_buf_cut(&out, 0);
    f.seconds = 0.2;
    cake_diagnosis_late(&f, &out);
    CU_ASSERT(!out.len);
    cake_buf_free(&out);
}

static void test_root(void)
{
    cake_run_metrics f = even();
    ranks[0].layer = 2;
    ranks[1].busy = ranks[2].busy = 5;
    ranks[1].layer = ranks[2].layer = 4.8;
    f.head = 5;
    f.sample = 2.5;
    says(&f, "stages wait for the root: of 9.9 ms per wave embedding takes 0.0, the head 5.0, sampling 2.5");
    says(&f, "give rank 0 fewer layers");
    waits(&f, 1, "root");
    waits(&f, 2, "root");
    ranks[0].n_layer = 1;
    says(&f, "give rank 0 more threads");
    ranks[0].layer = 6; /* its layers weigh more than that */
    ranks[0].n_layer = 12;
    says(&f, "rank 0 is the slowest");
    waits(&f, 1, "rank 0");
}

static void test_few(void)
{
    cake_run_metrics f = even();
    for (int i = 0; i < 3; i++)
        ranks[i].busy = ranks[i].layer = 3.3;
    f.bubble = 0.66;
    f.rows = 1000;
    says(&f, "few sequences: the stages had no wave for 66 % of the time, and waves had 1 rows");
    waits(&f, 1, "nothing to do");
    f.bubble = 0.1; /* waves there were, but on their way or waiting for a cpu */
    says(&f, "even the busiest rank is idle for 67 %");
    waits(&f, 0, "rank 2");
    f.again = 0.3;
    says(&f, "30 % of all rows were computed again");
}

static void test_reading(void)
{
    cake_run_metrics f = even();
    f.rows = 2000;
    says(&f, "memory bandwidth bound: waves of 2 rows");
    f.rows = 100000;
    f.reading = 0.8;
    says(&f, "memory bandwidth bound: waves of 100 rows");
    f.reading = 0.1;
    says(&f, "every rank was busy");
}

static void test_messages(void)
{
    cake_run_metrics f = even();
    ranks[2].busy = 9.95;
    ranks[2].move = 2;
    says(&f, "messages take 20 % of rank 2's time");
    f = even();
    f.n_rank = 1;
    f.sample = 3;
    f.read = 1;
    says(&f, "sampling takes 30 % of rank 0's time and reading prompts 10 %");
}

int main(void)
{
    const suite_test tests[] = {
        {"busy and even", test_even},
        {"too short", test_short},
        {"one rank is slower", test_slowest},
        {"... than planned", test_late},
        {"the root is slower", test_root},
        {"too few sequences", test_few},
        {"bound by memory", test_reading},
        {"messages and text", test_messages},
        {"ranks take turns", test_oversubscription},
        {"which findings are reported, and when", test_findings},
    };
    return SUITE_MAIN("advice", tests);
}
