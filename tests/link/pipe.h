/* SPDX-License-Identifier: Apache-2.0
 *
 * Both ends of a channel in one process, over queues in memory. Included by the tests of channels and their
 * users.
 */
#ifndef CAKE_TESTS_PIPE_H
#define CAKE_TESTS_PIPE_H

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "link/channel.h"
#include "tests/suite.h"

/* One direction. Zeros, or only `eager` set: empty. */
typedef struct pipe_way {
    char fragment[CAKE_FRAGMENTS][CAKE_FRAGMENT_BYTES];
    size_t bytes[CAKE_FRAGMENTS];
    int first, n;  /* fragments that were sent and not released */
    int n_arrived; /* those of them that the receiver sees; the test's, unless eager */
    int max;       /* the largest n so far */
    bool eager;    /* what is sent has arrived, and the sender need not wait until it is read */
} pipe_way;

typedef struct pipe_end {
    cake_transport transport;
    pipe_way *out, *in;
} pipe_end;

static inline char *pipe_room(cake_transport *transport)
{
    pipe_way *w = ((pipe_end *)transport)->out;
    return w->n < CAKE_FRAGMENTS ? w->fragment[(w->first + w->n) % CAKE_FRAGMENTS] : NULL;
}

static inline void pipe_send(cake_transport *transport, size_t bytes)
{
    pipe_way *w = ((pipe_end *)transport)->out;
    CU_ASSERT(bytes > 0 && bytes <= CAKE_FRAGMENT_BYTES && w->n < CAKE_FRAGMENTS);
    w->bytes[(w->first + w->n++) % CAKE_FRAGMENTS] = bytes;
    w->max = w->n > w->max ? w->n : w->max;
    w->n_arrived = w->eager ? w->n : w->n_arrived;
}

static inline const char *pipe_arrived(cake_transport *transport, size_t *bytes)
{
    pipe_way *w = ((pipe_end *)transport)->in;
    *bytes = w->bytes[w->first];
    return w->n_arrived ? w->fragment[w->first] : NULL;
}

static inline void pipe_release(cake_transport *transport)
{
    pipe_way *w = ((pipe_end *)transport)->in;
    memset(w->fragment[w->first], 0xEE, CAKE_FRAGMENT_BYTES); /* nobody may look at it any more */
    w->first = (w->first + 1) % CAKE_FRAGMENTS;
    w->n--;
    w->n_arrived--;
}

static inline bool pipe_leaving(cake_transport *transport)
{
    const pipe_way *w = ((pipe_end *)transport)->out;
    return !w->eager && w->n > 0;
}

static inline void pipe_close(cake_transport *transport)
{
    free(transport);
}

static inline cake_channel *pipe_open(pipe_way *out, pipe_way *in)
{
    static const cake_transport_ops kind = {pipe_room,    pipe_send,    pipe_arrived,
                                            pipe_release, pipe_leaving, pipe_close};
    pipe_end *end = cake_alloc(1, sizeof *end);
    *end = (pipe_end){{&kind}, out, in};
    return cake_channel_open(&end->transport);
}

#endif
