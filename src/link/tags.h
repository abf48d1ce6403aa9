/* SPDX-License-Identifier: Apache-2.0
 *
 * Every MPI tag there is, but for 0, by which cake_comm_pingpong measures: nothing else is under way then.
 */
#ifndef CAKE_LINK_TAGS_H
#define CAKE_LINK_TAGS_H

enum {
    CAKE_TAG_PING = 1,     /* small messages whose round trip is measured */
    CAKE_TAG_CHANNEL = 2,  /* pieces of letters between world rank 0 and the roots of replicas */
    CAKE_TAG_SENDRECV = 3, /* what two ranks tell each other at the start */
    CAKE_TAG_EDGE = 100    /* + 2 * the number of an edge: its messages, in order; + 1: bodies beside them */
};

#endif
