/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes of beginnings compared with a model: equal tokens have equal nodes, and unused nodes are freed.
 */
#include "schedule/prefix_tree.h"

#include <stdbool.h>
#include <string.h>

#include "tests/suite.h"
#include "types/wave.h"

enum { N_PROMPT = 200, MAX_PAGES = 6 };

static struct {
    int32_t id[N_PROMPT][MAX_PAGES * CAKE_PAGE], chain[N_PROMPT][MAX_PAGES];
    int n[N_PROMPT]; /* pages; 0: it has left */
    int64_t salt[N_PROMPT];
} job;

static uint32_t state = 7;

static int dice(int n)
{
    state = state * 1664525u + 1013904223u;
    return (int)((state >> 8) % (uint32_t)n);
}

static bool alike(int a, int b, int pages)
{
    return job.salt[a] == job.salt[b] &&
           !memcmp(job.id[a], job.id[b], (size_t)pages * CAKE_PAGE * sizeof(int32_t));
}

/* Few tokens and late differences, so that much is alike. */
static void write_prompt(int i)
{
    int pages = 1 + dice(MAX_PAGES);
    job.salt[i] = dice(2);
    for (int k = 0; k < pages; k++) {
        int kind = dice(2);
        for (int t = 0; t < CAKE_PAGE; t++)
            job.id[i][k * CAKE_PAGE + t] = t == CAKE_PAGE - 1 ? kind : t;
    }
    job.n[i] = pages;
}

/* Every two prompts have the same node where they are alike, and only there; users are counted. */
static void check(const cake_prefix_tree *p)
{
    int wrong = 0;
    for (int a = 0; a < N_PROMPT; a++)
        for (int k = 0; k < job.n[a]; k++) {
            int users = 0;
            for (int b = 0; b < N_PROMPT; b++) {
                bool same = k < job.n[b] && alike(a, b, k + 1);
                users += same;
                for (int j = 0; j < job.n[b]; j++)
                    wrong += (job.chain[a][k] == job.chain[b][j]) != (j == k && same);
            }
            wrong += cake_prefix_tree_users(p, job.chain[a][k]) != users;
        }
    CU_ASSERT_EQUAL(wrong, 0);
}

static void test_nodes(void)
{
    cake_prefix_tree *p = cake_prefix_tree_open();
    memset(&job, 0, sizeof job);
    for (int step = 0; step < 3000; step++) {
        int i = dice(N_PROMPT);
        if (job.n[i]) {
            cake_prefix_tree_release(p, job.chain[i], job.n[i]);
            job.n[i] = 0;
        } else {
            write_prompt(i);
            cake_prefix_tree_insert(p, job.salt[i], job.id[i], job.n[i], job.chain[i]);
        }
        if (step % 100 == 0)
            check(p);
    }
    for (int i = 0; i < N_PROMPT; i++)
        cake_prefix_tree_release(p, job.chain[i], job.n[i]);
    CU_ASSERT_EQUAL(cake_prefix_tree_count(p), 0);
    cake_prefix_tree_close(p);
}

/* More nodes than there is room for at first: all of them are found again. */
static void test_growth(void)
{
    enum { N = 5000 };
    static int32_t id[2 * CAKE_PAGE], chain[N][2];
    cake_prefix_tree *p = cake_prefix_tree_open();
    int wrong = 0;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < N; i++) {
            int32_t again[2];
            id[CAKE_PAGE + i % CAKE_PAGE] = i;
            cake_prefix_tree_insert(p, 0, id, 2, round ? again : chain[i]);
            wrong += round && (again[0] != chain[i][0] || again[1] != chain[i][1]);
            id[CAKE_PAGE + i % CAKE_PAGE] = 0;
        }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(cake_prefix_tree_users(p, chain[0][0]), 2 * N);
    for (int i = 0; i < 2 * N; i++)
        cake_prefix_tree_release(p, chain[i % N], 2);
    CU_ASSERT_EQUAL(cake_prefix_tree_count(p), 0);
    cake_prefix_tree_close(p);
}

/* A kept node and its ancestors survive after all prompts are released. */
static void test_keep(void)
{
    static int32_t id[3 * CAKE_PAGE], other[CAKE_PAGE] = {1};
    int32_t chain[3], again[3], one;
    cake_prefix_tree *p = cake_prefix_tree_open();
    cake_prefix_tree_insert(p, 0, id, 3, chain);
    cake_prefix_tree_keep(p, chain[1]);
    cake_prefix_tree_release(p, chain, 3);
    CU_ASSERT_EQUAL(cake_prefix_tree_count(p), 2);
    CU_ASSERT_EQUAL(cake_prefix_tree_users(p, chain[1]), 0);
    cake_prefix_tree_insert(p, 0, other, 1, &one);
    cake_prefix_tree_insert(p, 0, id, 3, again);
    CU_ASSERT(again[0] == chain[0] && again[1] == chain[1] && one != chain[0] && one != chain[1]);
    cake_prefix_tree_release(p, again, 3);
    cake_prefix_tree_release(p, &one, 1);
    cake_prefix_tree_drop(p, chain[1]);
    CU_ASSERT_EQUAL(cake_prefix_tree_count(p), 0);
    cake_prefix_tree_close(p);
}

int main(void)
{
    static const suite_test tests[] = {
        {"prompts have nodes in common where they are alike", test_nodes},
        {"many nodes", test_growth},
        {"what is kept keeps its node", test_keep},
    };
    return SUITE_MAIN("prefixes", tests);
}
