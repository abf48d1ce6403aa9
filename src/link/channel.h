/* SPDX-License-Identifier: Apache-2.0
 *
 * Letters between two ranks, beside the waves: bytes of any length, in order, both ways. They leave in
 * fragments of bounded size, a bounded number of which is under way, and nothing waits: what cannot leave
 * yet is kept by its sender, and a receiver takes no more than the message that it has not read.
 */
#ifndef CAKE_LINK_CHANNEL_H
#define CAKE_LINK_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

#include "link/comm.h"

enum {
    CAKE_FRAGMENT_BYTES = 32 << 10,
    CAKE_FRAGMENTS = 4
}; /* bytes of a fragment at most; of each direction under way at most */

typedef struct cake_channel cake_channel;

/* What carries fragments. */
typedef struct cake_transport cake_transport;
typedef struct cake_transport_ops {
    char *(*room)(cake_transport *transport); /* where one more fragment may be written; NULL: not now */
    void (*send)(cake_transport *transport, size_t bytes); /* what was written there leaves */
    const char *(*arrived)(cake_transport *transport,
                           size_t *bytes);      /* the oldest fragment that is there, or NULL */
    void (*release)(cake_transport *transport); /* it was read */
    bool (*leaving)(cake_transport *transport); /* whether a fragment is still under way */
    void (*close)(cake_transport *transport);
} cake_transport_ops;

/* What every kind begins with. */
struct cake_transport {
    const cake_transport_ops *kind;
};

/* To and from a rank of the world, which has to open the other end. */
cake_err cake_transport_open_mpi(const cake_comm *world, int peer, cake_transport **out);
size_t cake_transport_bytes(void); /* of its buffers */

cake_channel *cake_channel_open(cake_transport *transport); /* takes the transport over */
void cake_channel_close(cake_channel *channel);             /* NULL is fine; nothing may be under way */

/* Keeps the message until it has left; len is at least 1. */
void cake_channel_send(cake_channel *channel, const void *message, size_t len);
/* The next message that is there as a whole, valid until the next call of this; NULL: none. Called often. */
const char *cake_channel_recv(cake_channel *channel, size_t *len);
/* Lets messages that were sent leave. Called often. */
void cake_channel_progress(cake_channel *channel);
/* Whether anything was sent that has not arrived. */
bool cake_channel_sending(const cake_channel *channel);

#endif
