/* SPDX-License-Identifier: Apache-2.0
 *
 * Which replica gets which requests: by demand, a little ahead, those that begin alike together.
 */
#include "dispatch/policy.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/suite.h"
#include "types/wave.h"

enum { MOST_REPLICAS = 70, MOST_ITEMS = 4000, LONG = 40 * CAKE_PAGE };

/* Items are numbered; owner tells who was given which, in which order. */
typedef struct game {
    cake_dispatch_policy *policy;
    int n_replica;
    int item[MOST_ITEMS], owner[MOST_ITEMS];
    int n_item, n_assigned;
    cake_replica_progress progress[MOST_REPLICAS];
} game;

static game g;

static void begin(int n_replica, int n_slot, int rows)
{
    cake_replica_capacity capacity[MOST_REPLICAS];
    memset(&g, 0, sizeof g);
    for (int r = 0; r < n_replica; r++)
        capacity[r] = (cake_replica_capacity){n_slot, rows};
    g.n_replica = n_replica;
    g.policy = cake_dispatch_policy_open(n_replica, capacity);
}

/* A prompt of so many tokens, the first `alike` of which are those of its group, the others its own. */
static void add(int group, int alike, int n_token)
{
    static int32_t ids[LONG];
    int n = g.n_item++;
    for (int i = 0; i < n_token; i++)
        ids[i] = i < alike ? 1000 * group + i : 100000 * (n + 1) + i;
    g.item[n] = n;
    g.owner[n] = -1;
    cake_dispatch_policy_add(g.policy, &g.item[n], 0, ids, n_token);
}

/* One batch; its replica. */
static int give(void)
{
    void *item[CAKE_DISPATCH_MAX];
    int n, r = cake_dispatch_policy_pick(g.policy, item, &n);
    CU_ASSERT_FATAL((r < 0) == (n == 0) && n <= CAKE_DISPATCH_MAX && r < g.n_replica);
    for (int i = 0; i < n; i++) {
        int at = *(int *)item[i];
        CU_ASSERT(g.owner[at] == -1);
        g.owner[at] = r;
        g.n_assigned++;
    }
    return r;
}

static void give_all(void)
{
    while (give() >= 0)
        ;
}

static int count(int r)
{
    return (int)cake_dispatch_policy_assigned(g.policy, r);
}

/* The replica has begun all that it was given. */
static void start(int r, int64_t tokens)
{
    g.progress[r].begun = count(r);
    g.progress[r].begun_tokens = tokens;
    cake_dispatch_policy_update(g.policy, r, &g.progress[r]);
}

static void end(void)
{
    while (cake_dispatch_policy_cancel(g.policy))
        ;
    cake_dispatch_policy_close(g.policy);
}

static void test_one_goes_to_the_first(void)
{
    begin(4, 64, 512);
    add(0, 0, 20);
    cake_dispatch_policy_end(g.policy);
    CU_ASSERT_EQUAL(give(), 0);
    CU_ASSERT_EQUAL(give(), -1);
    CU_ASSERT(!cake_dispatch_policy_over(g.policy));
    cake_dispatch_policy_done(g.policy, 0);
    CU_ASSERT(cake_dispatch_policy_over(g.policy));
    end();
}

/* A short file is shared out evenly, however many sequences a replica could have. */
static void test_few(void)
{
    begin(3, 1000, 100000);
    for (int i = 0; i < 30; i++)
        add(0, 0, 10 + i);
    cake_dispatch_policy_end(g.policy);
    give_all();
    CU_ASSERT_EQUAL(g.n_assigned, 30);
    for (int r = 0; r < 3; r++)
        CU_ASSERT(count(r) >= 9 && count(r) <= 11);
    end();
}

/* Of a long file nobody gets more than a little ahead: by number, by rows, and by sequences in all. */
static void test_a_little_ahead(void)
{
    begin(2, 64, 100000);
    for (int i = 0; i < 200; i++)
        add(0, 0, 10);
    give_all();
    CU_ASSERT(count(0) == 32 && count(1) == 32);
    start(1, 320);
    give_all();
    CU_ASSERT(count(0) == 32 && count(1) == 64);
    start(1, 640);
    give_all();
    start(1, 960); /* 96 that are not done: as many as it can have, and a little ahead */
    give_all();
    CU_ASSERT(count(0) == 32 && count(1) <= 100);
    end();

    begin(2, 64, 512);
    for (int i = 0; i < 64; i++)
        add(0, 0, LONG);
    give_all();
    CU_ASSERT(count(0) == 1 && count(1) == 1);
    start(0, LONG);
    give_all();
    CU_ASSERT(count(0) == 2 && count(1) == 1);
    end();
}

static void test_room(void)
{
    begin(2, 8, 512);
    int n = 0;
    while (cake_dispatch_policy_can_add(g.policy) && n < MOST_ITEMS) {
        add(0, 0, 10);
        n++;
    }
    CU_ASSERT(n > 100 && n < 1000);
    end();
    begin(2, 8, 512);
    for (n = 0; cake_dispatch_policy_can_add(g.policy) && n < MOST_ITEMS; n++)
        add(0, 0, LONG);
    CU_ASSERT(n > 100 && n < 1000 && n * LONG < 2 << 20);
    end();
}

/* Requests with ten documents in turn: the questions to one are one replica's, but for the last ones of who
 * has more. */
static void test_groups(void)
{
    begin(3, 64, 100000);
    for (int i = 0; i < 90; i++)
        add(1 + i % 10, 3 * CAKE_PAGE, 3 * CAKE_PAGE + 20);
    int moved = 0;
    for (int round = 0; round < 60; round++) {
        give();
        for (int r = 0; r < 3; r++)
            start(r, (int64_t)count(r) * (3 * CAKE_PAGE + 20));
    }
    CU_ASSERT_EQUAL(g.n_assigned, 90);
    for (int i = 10; i < 90; i++)
        moved += g.owner[i] != g.owner[i % 10];
    CU_ASSERT(moved <= 9);
    for (int r = 0; r < 3; r++)
        CU_ASSERT(count(r) >= 20);
    end();
}

/* A beginning that all requests share does not send them all to one replica; those that also share their
 * continuation still go to the same one. */
static void test_groups_below_one_beginning(void)
{
    begin(2, 64, 100000);
    static int32_t ids[6 * CAKE_PAGE];
    for (int i = 0; i < 60; i++) {
        int document = i % 6;
        for (int j = 0; j < 6 * CAKE_PAGE; j++)
            ids[j] = j < 2 * CAKE_PAGE   ? j
                     : j < 5 * CAKE_PAGE ? 1000 * (document + 1) + j
                                         : 10000 * (i + 1) + j;
        g.item[g.n_item] = i;
        g.owner[g.n_item] = -1;
        cake_dispatch_policy_add(g.policy, &g.item[g.n_item++], 0, ids, 6 * CAKE_PAGE);
    }
    for (int round = 0; round < 30; round++) {
        give();
        for (int r = 0; r < 2; r++)
            start(r, (int64_t)count(r) * 6 * CAKE_PAGE);
    }
    CU_ASSERT_EQUAL(g.n_assigned, 60);
    int moved = 0;
    for (int i = 6; i < 60; i++)
        moved += g.owner[i] != g.owner[i % 6];
    CU_ASSERT(moved <= 10); /* of one document that was shared at the end */
    CU_ASSERT(count(0) >= 20 && count(1) >= 20);
    end();
}

/* One group only: nobody stands idle for its sake. */
static void test_a_group_is_no_prison(void)
{
    begin(2, 8, 512);
    for (int i = 0; i < 40; i++)
        add(1, 4 * CAKE_PAGE, 4 * CAKE_PAGE + 1 + i);
    CU_ASSERT_EQUAL(give(), 0);
    CU_ASSERT_EQUAL(give(), 1);
    CU_ASSERT(count(0) > 0 && count(1) > 0);
    end();
}

/* Salts keep apart what has the same tokens. */
static void test_salt(void)
{
    int32_t ids[2 * CAKE_PAGE + 1] = {0};
    begin(2, 8, 512);
    for (int i = 0; i < 2; i++) {
        g.item[i] = i;
        g.owner[i] = -1;
        cake_dispatch_policy_add(g.policy, &g.item[i], i, ids, 2 * CAKE_PAGE + 1);
    }
    g.n_item = 2;
    cake_dispatch_policy_end(g.policy);
    give_all();
    CU_ASSERT(g.owner[0] == 0 && g.owner[1] == 1);
    end();
}

/* A replica that has found a group takes from it as long as it goes on; the others are not forgotten. */
static void test_nobody_is_forgotten(void)
{
    begin(1, 8, 100000);
    int n = 0, waited = -1;
    add(1, 2 * CAKE_PAGE, 2 * CAKE_PAGE + 1);
    give_all();
    start(0, 0);
    add(0, 0, 10); /* whom many overtake */
    for (; waited < 0 && n < 3000; n++) {
        while (cake_dispatch_policy_can_add(g.policy) && g.n_item < MOST_ITEMS && g.n_item < n + 20)
            add(1, 2 * CAKE_PAGE, 2 * CAKE_PAGE + 1);
        cake_dispatch_policy_done(g.policy, 0);
        start(0, 0);
        give();
        waited = g.owner[1] == 0 ? n : -1;
    }
    CU_ASSERT(waited > 10 && waited < 1000);
    end();
}

/* Replicas at work: a wave of a replica advances every sequence that it has by a token. */
typedef struct worker {
    double speed, owed; /* waves a turn */
    int begun, left[64], n_active, answered;
} worker;

/* Until all items are answered; the turns that it took. length: tokens of each answer. */
static int play(int n_item, worker *workers, int n_slot, const int *length)
{
    static int queue[MOST_REPLICAS][MOST_ITEMS];
    int turns = 0, assigned[MOST_REPLICAS] = {0};
    while (!cake_dispatch_policy_over(g.policy) && turns < 1000000) {
        while (g.n_item < n_item && cake_dispatch_policy_can_add(g.policy))
            add(0, 0, 10);
        if (g.n_item == n_item)
            cake_dispatch_policy_end(g.policy);
        void *item[CAKE_DISPATCH_MAX];
        for (int n, r; (r = cake_dispatch_policy_pick(g.policy, item, &n)) >= 0;)
            for (int i = 0; i < n; i++)
                queue[r][assigned[r]++] = *(int *)item[i];
        for (int r = 0; r < g.n_replica; r++) {
            worker *w = &workers[r];
            for (w->owed += w->speed; w->owed >= 1; w->owed--) {
                while (w->begun < assigned[r] && w->n_active < n_slot)
                    w->left[w->n_active++] = length[queue[r][w->begun++]];
                g.progress[r].rows += w->n_active;
                for (int i = w->n_active; i-- > 0;)
                    if (--w->left[i] == 0) {
                        w->left[i] = w->left[--w->n_active];
                        w->answered++;
                        cake_dispatch_policy_done(g.policy, r);
                    }
            }
            g.progress[r].begun = w->begun;
            g.progress[r].begun_tokens = 10 * w->begun;
            cake_dispatch_policy_update(g.policy, r, &g.progress[r]);
        }
        turns++;
    }
    return turns;
}

/* Answers are as many as speeds are, and nobody waits long for the slowest at the end. */
static void test_slow_ones_take_less(void)
{
    static int length[MOST_ITEMS];
    static const struct {
        int n;
        double speed[4];
        double worst; /* time over that of a queue that is shared out to the token */
    } rows[] = {
        {2, {1, 1}, 1.1},         {2, {1, 0.25}, 1.15},         {3, {1, 0.5, 0.25}, 1.15},
        {4, {1, 1, 1, 0.1}, 1.2}, {4, {0.3, 1, 0.6, 0.9}, 1.1},
    };
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        enum { N = 3000, SLOTS = 16 };
        worker workers[4] = {{0}};
        double tokens = 0, speeds = 0;
        uint64_t random = row + 1;
        for (int i = 0; i < N; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            length[i] = 20 + (int)(random >> 40) % 60;
            tokens += length[i];
        }
        begin(rows[row].n, SLOTS, 512);
        for (int r = 0; r < rows[row].n; r++)
            speeds += workers[r].speed = rows[row].speed[r];
        int turns = play(N, workers, SLOTS, length), all = 0;
        double ideal = tokens / (speeds * SLOTS);
        CU_ASSERT(turns < rows[row].worst * ideal);
        for (int r = 0; r < rows[row].n; r++) {
            double share = N * rows[row].speed[r] / speeds;
            CU_ASSERT(workers[r].answered > 0.9 * share - 4 && workers[r].answered < 1.1 * share + 4);
            all += workers[r].answered;
        }
        CU_ASSERT_EQUAL(all, N);
        end();
    }
}

/* More replicas than a word has bits; each is fed, and groups hold. */
static void test_many(void)
{
    begin(MOST_REPLICAS, 16, 512);
    for (int i = 0; i < 1000; i++)
        add(1 + i % MOST_REPLICAS, 2 * CAKE_PAGE, 2 * CAKE_PAGE + 1);
    for (int round = 0; round < 100; round++) {
        give_all();
        for (int r = 0; r < MOST_REPLICAS; r++)
            start(r, (int64_t)count(r) * (2 * CAKE_PAGE + 1));
    }
    CU_ASSERT_EQUAL(g.n_assigned, 1000);
    int moved = 0;
    for (int i = MOST_REPLICAS; i < 1000; i++)
        moved += g.owner[i] != g.owner[i % MOST_REPLICAS];
    CU_ASSERT(moved < 50);
    end();
}

int main(void)
{
    const suite_test tests[] = {
        {"a single request is the first replica's", test_one_goes_to_the_first},
        {"few requests are shared out evenly", test_few},
        {"many a little ahead of what is begun", test_a_little_ahead},
        {"those that wait are bounded", test_room},
        {"what begins alike stays together", test_groups},
        {"... below what all begin with, too", test_groups_below_one_beginning},
        {"... unless somebody would be idle", test_a_group_is_no_prison},
        {"... and salts keep it apart", test_salt},
        {"nobody is overtaken for ever", test_nobody_is_forgotten},
        {"slow replicas take less", test_slow_ones_take_less},
        {"many replicas", test_many},
    };
    return SUITE_MAIN("policy", tests);
}
