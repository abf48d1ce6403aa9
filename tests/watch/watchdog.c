/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/watchdog.h"

#include <string.h>

#include "tests/suite.h"

enum { N = 4 };

static const double patience = 7, now = 1000;

/* One pipeline of N ranks, a hop each but rank 0, which has none; all were heard just now and waves go
 * round. */
static void all_is_well(cake_peer *peers)
{
    for (int r = 0; r < N; r++) {
        peers[r] = (cake_peer){
            .state = CAKE_PEER_HEARD, .heard = now - 0.3, .progress_at = now - 0.3, .returned_at = now - 0.3};
        peers[r].beat = (cake_rank_beat){.phase = CAKE_PHASE_RUN,
                                         .upstream = (r + N - 1) % N,
                                         .edges = 1,
                                         .layer = -1,
                                         .got = 50,
                                         .sent = 50,
                                         .since_loop_s = 0.01};
    }
    peers[0].beat.in_flight = 3;
}

static bool is(const cake_peer *peers, cake_watchdog_verdict_kind kind, int rank)
{
    cake_watchdog_verdict v = cake_watchdog_judge(peers, NULL, N, patience, now);
    return v.kind == kind && (!kind || v.rank == rank);
}

static void test_lost(void)
{
    cake_peer peers[N];
    all_is_well(peers);
    CU_ASSERT(is(peers, CAKE_VERDICT_FINE, 0));
    peers[2].state = CAKE_PEER_GONE;
    CU_ASSERT(is(peers, CAKE_VERDICT_GONE, 2));
    peers[3].state = CAKE_PEER_FAILED; /* the others die of it */
    peers[3].status = 1;
    CU_ASSERT(is(peers, CAKE_VERDICT_FAILED, 3));
    all_is_well(peers);
    peers[1].state = CAKE_PEER_LEFT;
    peers[2].state = CAKE_PEER_NONE;
    CU_ASSERT(is(peers, CAKE_VERDICT_FINE, 0));
}

/* Silence counts where no waves come back either. */
static void test_silent(void)
{
    cake_peer peers[N];
    all_is_well(peers);
    peers[2].heard = now - 7.5;
    CU_ASSERT(is(peers, CAKE_VERDICT_FINE, 0));
    peers[0].returned_at = now - 6.5;
    CU_ASSERT(is(peers, CAKE_VERDICT_FINE, 0));
    peers[0].returned_at = now - 7.5;
    CU_ASSERT(is(peers, CAKE_VERDICT_SILENT, 2));
    for (int r = 0; r < N; r++) /* of two replicas the other one's waves say nothing */
        peers[r].beat.root = r / 2 * 2;
    peers[0].returned_at = now;
    peers[2].returned_at = now - 7.5;
    CU_ASSERT(is(peers, CAKE_VERDICT_SILENT, 2));
    peers[2].heard = now;
    peers[3].heard = now - 7.5;
    CU_ASSERT(is(peers, CAKE_VERDICT_SILENT, 3));
    peers[2].returned_at = now;
    CU_ASSERT(is(peers, CAKE_VERDICT_FINE, 0));
    all_is_well(peers);
    for (int r = 0; r < N; r++) { /* while weights are loaded there are no waves */
        peers[r].beat.phase = CAKE_PHASE_LOAD;
        peers[r].beat.in_flight = 0;
        peers[r].progress_at = peers[r].returned_at = now - 900;
    }
    CU_ASSERT(is(peers, CAKE_VERDICT_FINE, 0));
    peers[1].heard = now - 7.5;
    CU_ASSERT(is(peers, CAKE_VERDICT_SILENT, 1));
}

/* No connection is left to a replica, and its root's letters still come. */
static void test_letters(void)
{
    cake_peer peers[N];
    _Atomic double letters[N] = {0};
    all_is_well(peers);
    for (int r = 0; r < N; r++)
        peers[r].beat.root = r / 2 * 2;
    for (int r = 2; r < N; r++)
        peers[r].heard = peers[r].returned_at = now - 60;
    letters[2] = now - 6.5;
    CU_ASSERT(cake_watchdog_judge(peers, letters, N, patience, now).kind == CAKE_VERDICT_FINE);
    letters[2] = now - 7.5;
    CU_ASSERT(cake_watchdog_judge(peers, letters, N, patience, now).kind == CAKE_VERDICT_SILENT);
    letters[2] = now - 1;
    peers[1].heard = peers[0].returned_at = now - 8; /* they say nothing of another replica's ranks */
    cake_watchdog_verdict v = cake_watchdog_judge(peers, letters, N, patience, now);
    CU_ASSERT(v.kind == CAKE_VERDICT_SILENT && v.rank == 1);
}

/* Somebody works on one thing for long, or a message does not come through. */
static void test_stuck(void)
{
    cake_peer peers[N];
    all_is_well(peers);
    for (int r = 0; r < N; r++)
        peers[r].progress_at = now - 8;
    peers[2].beat.since_loop_s = 8;
    CU_ASSERT(is(peers, CAKE_VERDICT_FINE, 0));
    for (int r = 0; r < N; r++)
        peers[r].progress_at = now - 31;
    peers[2].beat.since_loop_s = 31;
    CU_ASSERT(is(peers, CAKE_VERDICT_SLOW, 2));
    peers[2].beat.since_loop_s = 0;
    peers[1].beat.sent = 51;
    cake_watchdog_verdict v = cake_watchdog_judge(peers, NULL, N, patience, now);
    CU_ASSERT(v.kind == CAKE_VERDICT_STUCK && v.rank == 1 && v.other == 2);
    peers[1].beat.edges = 2; /* then nobody knows between whom */
    v = cake_watchdog_judge(peers, NULL, N, patience, now);
    CU_ASSERT(v.kind == CAKE_VERDICT_STUCK && v.rank == 0 && v.other == -1);
    peers[3].progress_at = now - 6.5;
    CU_ASSERT(is(peers, CAKE_VERDICT_FINE, 0));
    peers[3].progress_at = now - 31;
    peers[0].beat.in_flight = 0; /* nothing is under way: the input pauses */
    CU_ASSERT(is(peers, CAKE_VERDICT_FINE, 0));
    peers[0].beat.in_flight = 1;
    peers[3].heard = now - 3; /* it may have moved since */
    CU_ASSERT(is(peers, CAKE_VERDICT_FINE, 0));
    peers[3].heard = now;
    peers[3].state = CAKE_PEER_NONE; /* it was never reached, and may be the one that works */
    CU_ASSERT(is(peers, CAKE_VERDICT_FINE, 0));
}

int main(void)
{
    static const suite_test tests[] = {
        {"a rank that ends", test_lost},
        {"a rank that falls silent", test_silent},
        {"a replica whose letters come", test_letters},
        {"waves that do not get on", test_stuck},
    };
    return SUITE_MAIN("watch", tests);
}
