/* SPDX-License-Identifier: Apache-2.0
 *
 * Signs of life beside MPI: a thread of each rank tells rank 0 twice a second where it is, and rank 0 tells
 * all, over TCP connections of their own. A process that ends takes its connection with it, so its end is
 * known at once; one that hangs, or that no network leads to any longer, falls silent. MPI itself says
 * neither.
 */
#ifndef CAKE_LINK_HEARTBEAT_H
#define CAKE_LINK_HEARTBEAT_H

#include <stdint.h>

#include "link/comm.h"

enum { CAKE_STATUS_LAYERS = 40 };

/* Where a rank is. Only the owner of the heartbeat knows what the numbers mean. */
typedef struct cake_rank_beat {
    int32_t phase;
    int32_t root;                    /* rank 0 of its replica, as the world counts */
    int32_t upstream, edges;         /* the rank that its waves come from; how many such edges it has */
    int32_t layer, rows;             /* of the wave that it works on; layer -1: none */
    int32_t in_flight, active;       /* of a root: waves and sequences under way */
    int64_t steps;                   /* grows with all that gets done */
    int64_t back;                    /* of a root: waves that came back */
    int64_t got, sent;               /* waves from and to other ranks */
    double since_s;                  /* seconds since the layer, or the phase, began */
    double turned_s;                 /* seconds since its loop last turned */
    char layers[CAKE_STATUS_LAYERS]; /* that it has */
} cake_rank_beat;

typedef enum cake_peer_state {
    CAKE_PEER_NONE,   /* it was never heard of */
    CAKE_PEER_HEARD,  /* its connection is there, or was lost on the way */
    CAKE_PEER_LEFT,   /* it has said goodbye */
    CAKE_PEER_FAILED, /* it ends with `status`, and has said why */
    CAKE_PEER_GONE    /* its process is no more */
} cake_peer_state;

/* What is known of a rank; times are cake_clock_now's. */
typedef struct cake_peer {
    cake_peer_state state;
    int status;
    double heard;       /* the last sign of it */
    double moved, came; /* when beat.steps last changed, and beat.back */
    cake_rank_beat beat;
} cake_peer;

typedef struct cake_heartbeat cake_heartbeat;

typedef struct cake_heartbeat_owner {
    void *self;
    /* Both are called by the heartbeat's thread. tell: fills in where this rank is. look: is told what is
     * known of the others, twice a second or as soon as something is heard. peers: on rank 0 [size], its
     * own among them; elsewhere [1], rank 0's. */
    void (*tell)(void *self, cake_rank_beat *beat);
    void (*look)(void *self, const cake_peer *peers, double now);
} cake_heartbeat_owner;

/* Called by all ranks. names: addresses of rank 0's host, separated by spaces (only rank 0's names count).
 * NULL: this rank cannot listen; that is said, and is no error. Connections are made in the background. */
cake_heartbeat *cake_heartbeat_open(const cake_comm *world, const char *names,
                                    const cake_heartbeat_owner *owner);
/* Says goodbye to the others, so that its end is no news. */
void cake_heartbeat_close(cake_heartbeat *heartbeat); /* NULL is fine */
/* Tells the others that this rank ends the run, and has said why. Rank 0's word ends them; if another rank
 * calls, rank 0 gets a moment to do it. Called by any thread; does nothing without a heartbeat. */
void cake_heartbeat_send_failed(int status);

#endif
