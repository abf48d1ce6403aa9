/* SPDX-License-Identifier: Apache-2.0
 *
 * Two ranks whose connection takes messages in pieces, or none for some time: neither is reported dead.
 * Starts itself under the launcher.
 */
#include "link/heartbeat.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/suite.h"

enum { BEATS = 5 };

static cake_comm world;
static cake_heartbeat *heartbeat;
static atomic_int calls, n_filled;
static _Atomic(cake_peer_state) state;
static _Atomic int64_t steps;
static atomic_bool backwards;

/* Replaces the library's. Rank 1's first message passes; of later ones a socket takes ten bytes, then
 * nothing, then ten again and so on. */
ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    bool ours = flags == (MSG_NOSIGNAL | MSG_DONTWAIT) && world.rank == 1;
    int call = ours ? calls++ : 0;
    if (call && call % 20 == 0) {
        errno = EAGAIN;
        return -1;
    }
    return syscall(SYS_sendto, fd, bytes, call && len > 10 ? 10 : len, flags, NULL, 0);
}

static void fill_beat(void *self, cake_rank_beat *beat)
{
    (void)self;
    *beat = (cake_rank_beat){.steps = ++n_filled};
}

static void look(void *self, const cake_peer *peers, double now)
{
    (void)self, (void)now;
    const cake_peer *peer = world.rank ? peers : &peers[1];
    backwards = backwards || peer->beat.steps < steps;
    steps = peer->beat.steps;
    state = peer->state;
}

static bool comes_to(cake_peer_state wanted, int64_t least)
{
    double end = cake_clock_now() + 20;
    while ((state != wanted || steps < least) && state <= CAKE_PEER_HEARD && cake_clock_now() < end)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    return state == wanted && steps >= least;
}

static void open_heartbeat(void)
{
    cake_heartbeat_owner owner = {.fill = fill_beat, .check = look};
    heartbeat = cake_heartbeat_open(&world, "127.0.0.1", &owner);
}

static void test_pieces(void)
{
    open_heartbeat();
    CU_ASSERT_FATAL(heartbeat != NULL);
    CU_ASSERT(comes_to(CAKE_PEER_HEARD, BEATS));
    CU_ASSERT(!backwards);
    CU_ASSERT(comes_to(CAKE_PEER_LEFT, BEATS)); /* its goodbye comes whole, too */
    cake_heartbeat_close(heartbeat);
}

/* Rank 1: beats, and a goodbye. */
static void accompany(void)
{
    open_heartbeat();
    while (n_filled < BEATS + 2)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    cake_heartbeat_close(heartbeat);
}

int main(int argc, char **argv)
{
    static const suite_test tests[] = {{"messages that leave in pieces", test_pieces}};
    int status = 0;
    if (argc == 1) {
        char command[1024];
        suite_launches();
        snprintf(command, sizeof command, "'%s' 2 '%s' rank", suite_path("mpirun.sh"), argv[0]);
        return system(command) != 0;
    }
    if (cake_comm_open(&argc, &argv, &world))
        return 1;
    if (world.rank)
        accompany();
    else
        status = SUITE_MAIN("heartbeat", tests);
    cake_comm_close();
    return status;
}
