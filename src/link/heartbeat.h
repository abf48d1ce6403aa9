/* SPDX-License-Identifier: Apache-2.0
 *
 * Heartbeats outside MPI: a thread of each rank reports its status to rank 0 twice a second, and rank 0
 * reports to all, over separate TCP connections. When a process dies its connection closes, which is noticed
 * at once; a process that is stopped or cut off from the network falls silent. MPI reports neither. A main
 * thread that hangs does not make its process silent: only its status stops changing.
 */
#ifndef CAKE_LINK_HEARTBEAT_H
#define CAKE_LINK_HEARTBEAT_H

#include <stdint.h>

#include "link/comm.h"

enum { CAKE_STATUS_LAYERS = 40 };

/* Status of a rank. Only the owner of the heartbeat interprets the numbers. */
typedef struct cake_rank_beat {
    int32_t phase;
    int32_t root;                    /* rank 0 of its replica, in world numbering */
    int32_t upstream, edges;         /* the rank that sends it waves; number of such edges */
    int32_t layer, rows;             /* of the wave it works on; layer -1: none */
    int32_t in_flight, active;       /* of a root: waves and sequences in flight */
    int64_t steps;                   /* increases with all progress */
    int64_t returned;                /* of a root: waves that came back from the last stage */
    int64_t got, sent;               /* waves received from and sent to other ranks */
    double since_s;                  /* seconds since the layer or phase began */
    double since_loop_s;             /* seconds since the last iteration of the main thread's loop */
    char layers[CAKE_STATUS_LAYERS]; /* layers of this rank */
} cake_rank_beat;

typedef enum cake_peer_state {
    CAKE_PEER_NONE,   /* never heard */
    CAKE_PEER_HEARD,  /* connected, or the connection was lost */
    CAKE_PEER_LEFT,   /* ended regularly */
    CAKE_PEER_FAILED, /* ends with `status`, and has reported why */
    CAKE_PEER_GONE    /* its process has died */
} cake_peer_state;

/* State of a rank as known here; times are cake_clock_now's. */
typedef struct cake_peer {
    cake_peer_state state;
    int status;
    double heard;                    /* time of the last message */
    double progress_at, returned_at; /* times when beat.steps and beat.returned last changed */
    cake_rank_beat beat;
} cake_peer;

typedef struct cake_heartbeat cake_heartbeat;

typedef struct cake_heartbeat_owner {
    void *self;
    /* Both are called by the heartbeat thread. fill writes this rank's status. check gets the peers twice a
     * second and whenever a message arrives. peers: on rank 0 [size], including itself; elsewhere [1], rank
     * 0. */
    void (*fill)(void *self, cake_rank_beat *beat);
    void (*check)(void *self, const cake_peer *peers, double now);
} cake_heartbeat_owner;

/* Collective. names: addresses of rank 0's host, separated by spaces (only rank 0's argument counts). NULL:
 * this rank cannot listen, which is logged and no error. Connects in the background. */
cake_heartbeat *cake_heartbeat_open(const cake_comm *world, const char *names,
                                    const cake_heartbeat_owner *owner);
/* Tells the others that this is a regular end. */
void cake_heartbeat_close(cake_heartbeat *heartbeat); /* NULL is fine */
/* Tells the others that this rank ends the run and has reported why. A message of rank 0 ends them; if
 * another rank calls, rank 0 gets a moment to send it. Any thread may call; does nothing without a
 * heartbeat. */
void cake_heartbeat_send_failed(int status);

#endif
