/* SPDX-License-Identifier: Apache-2.0
 *
 * All MPI tags except 0, which cake_comm_pingpong uses while nothing else is in flight.
 */
#ifndef CAKE_LINK_TAGS_H
#define CAKE_LINK_TAGS_H

enum {
    CAKE_TAG_PING = 1,     /* small messages for round-trip measurements */
    CAKE_TAG_CHANNEL = 2,  /* channel fragments between world rank 0 and the roots of replicas */
    CAKE_TAG_SENDRECV = 3, /* exchanges between two ranks at the start */
    CAKE_TAG_EDGE = 100    /* + 2 * edge number: its messages, in order; + 1: their bodies */
};

#endif
