/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans for ranks that do not exist: copies of hosts, replicas of them, what does not fit.
 */
#include "planner/whatif_plan.h"

#include "tests/planner/world.h"

enum { MANY = 1 << 30 };

/* Two ranks of one host and one of another become seven. */
static void test_repeat(void)
{
    static const int node[] = {0, 0, 2, 3, 3, 5, 6}, local_size[] = {2, 2, 1, 2, 2, 1, 1};
    cake_rank me;
    open_tiny(&me, 3, MANY);
    me.cluster.resources[1].node = 0;
    me.cluster.resources[0].local_size = me.cluster.resources[1].local_size = 2;
    for (int i = 0; i < 3; i++)
        me.cluster.rate[i].flops = 1 + i;
    me.cluster.resources[2].memory = 17;
    cake_whatif_plan_repeat(&me.cluster, 7);
    CU_ASSERT_EQUAL_FATAL(me.cluster.n_rank, 7);
    for (int i = 0; i < 7; i++) {
        CU_ASSERT_EQUAL(me.cluster.resources[i].node, node[i]);
        CU_ASSERT_EQUAL(me.cluster.resources[i].local_size, local_size[i]);
        CU_ASSERT_EQUAL(me.cluster.resources[i].memory, i % 3 == 2 ? 17 : MANY);
        CU_ASSERT_EQUAL(me.cluster.rate[i].flops, 1 + i % 3);
        CU_ASSERT_EQUAL(me.cluster.speed[i], 1);
    }
    cake_whatif_plan_repeat(&me.cluster, 1); /* fewer than there are: the host is no longer shared */
    CU_ASSERT(me.cluster.n_rank == 1 && me.cluster.resources[0].local_size == 1);
    close_world(&me);
}

static void test_replicas(void)
{
    cake_rank me;
    cake_plan plans[2];
    open_tiny(&me, 1, MANY);
    cake_whatif_plan_repeat(&me.cluster, 4);
    me.planning.n_replica = 2;
    CU_ASSERT_EQUAL_FATAL(cake_whatif_plan_replicas(&me, NULL, plans), CAKE_OK);
    for (int r = 0; r < 2; r++) {
        CU_ASSERT(plans[r].first == 2 * r && plans[r].n_rank == 2 && plans[r].n_hop == 2);
        CU_ASSERT_EQUAL(plans[r].hop[0].count + plans[r].hop[1].count, 8);
    }
    CU_ASSERT(me.planning.shape.n_lane == 2 && me.planning.max_positions == 256);
    CU_ASSERT_EQUAL(me.planning.shape.n_page[0], 2 * 64 * 4); /* all that 128 sequences can use */

    cake_report_stage like = {.host = "node0", .threads = 1}, r;
    r = cake_whatif_plan_report(&me.planning, &plans[1], 1, &like, 3);
    CU_ASSERT_STRING_EQUAL(r.host, "node0+3");
    int64_t layers = plans[1].hop[1].count;
    CU_ASSERT_EQUAL(r.weights_bytes, layers * me.input.layers.bytes[0]);
    CU_ASSERT_EQUAL(r.kv_bytes, 512 * layers * PAGE_BYTES + 128 * 4 * 4); /* pages and their table */
    r = cake_whatif_plan_report(&me.planning, &plans[0], 0, &like, 0);
    CU_ASSERT_STRING_EQUAL(r.host, "node0");
    CU_ASSERT_EQUAL(r.weights_bytes, plans[0].hop[0].count * me.input.layers.bytes[0] + me.input.layers.ends);
    for (int i = 0; i < 2; i++)
        cake_plan_free(&plans[i]);
    close_world(&me);
}

/* The smallest memory of all replicas decides how many pages there are. */
static void test_smallest(void)
{
    cake_rank me;
    cake_plan plans[3];
    int alone[3];
    open_tiny(&me, 3, MANY);
    me.cluster.resources[1].memory = 16 << 20;
    for (int i = 0; i < 3; i++) {
        cake_rank one;
        cake_plan plan;
        open_tiny(&one, 1, me.cluster.resources[i].memory);
        CU_ASSERT_EQUAL_FATAL(cake_whatif_plan_replicas(&one, NULL, &plan), CAKE_OK);
        alone[i] = one.planning.shape.n_page[0];
        cake_plan_free(&plan);
        close_world(&one);
    }
    CU_ASSERT(alone[1] < alone[0] && alone[2] == alone[0]);
    me.planning.n_replica = 3;
    CU_ASSERT_EQUAL_FATAL(cake_whatif_plan_replicas(&me, NULL, plans), CAKE_OK);
    CU_ASSERT_EQUAL(me.planning.shape.n_page[0], alone[1]);
    for (int i = 0; i < 3; i++)
        cake_plan_free(&plans[i]);
    close_world(&me);
}

static void expect_failure(cake_rank *me, const char *wanted)
{
    cake_buf text = {0};
    cake_plan plan;
    cake_log_capture(&text);
    CU_ASSERT_EQUAL(cake_whatif_plan_replicas(me, NULL, &plan), CAKE_ERR_FATAL);
    expect_said(&text, wanted);
}

static void test_too_large(void)
{
    cake_rank me;
    open_tiny(&me, 2, 1000);
    expect_failure(&me, "the model does not fit: for 2 ranks 1000 bytes are free on node0, ");
    close_world(&me);
    open_tiny(&me, 2, MANY);
    me.cluster.resources[0].mapping = me.cluster.resources[1].mapping = 2000;
    expect_failure(&me, "for 2 ranks 2.0 KiB are free on node0 for each (ulimit -v), ");
    close_world(&me);
    open_tiny(&me, 2, 64 << 20);
    me.input.kv_memory = MANY;
    me.input.context = 1 << 20;
    expect_failure(&me, "a KV cache of 1.0 GiB on each rank is more than the layers leave free: ");
    close_world(&me);
}

int main(void)
{
    static const suite_test tests[] = {
        {"copies of hosts", test_repeat},
        {"replicas", test_replicas},
        {"the smallest memory", test_smallest},
        {"what does not fit", test_too_large},
    };
    return SUITE_MAIN("whatif_plan", tests);
}
