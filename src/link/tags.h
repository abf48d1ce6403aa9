/* SPDX-License-Identifier: Apache-2.0
 *
 * Every MPI tag there is.
 */
#ifndef CAKE_LINK_TAGS_H
#define CAKE_LINK_TAGS_H

enum {
    CAKE_TAG_PING = 1,
    CAKE_TAG_MAIL = 2, /* pieces of letters between world rank 0 and the roots of replicas */
    CAKE_TAG_SWAP = 3, /* what two ranks tell each other at the start */
    CAKE_TAG_EDGE =
        100 /* + 2 * the number of the edge: messages of an edge stay in order; + 1: bodies that go beside */
};

#endif
