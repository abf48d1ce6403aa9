/* SPDX-License-Identifier: Apache-2.0
 *
 * A message channel between two ranks, in addition to the waves: messages of any length, in order, in both
 * directions. They are sent in bounded fragments, with a bounded number in flight. Nothing blocks: unsent
 * data stays with the sender, and a receiver buffers no more than the message it has not read.
 */
#ifndef CAKE_LINK_CHANNEL_H
#define CAKE_LINK_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

#include "link/comm.h"

enum {
    CAKE_FRAGMENT_BYTES = 32 << 10,
    CAKE_FRAGMENTS = 4
}; /* max bytes of a fragment; max fragments in flight per direction */

typedef struct cake_channel cake_channel;

/* Transport of fragments. */
typedef struct cake_transport cake_transport;
typedef struct cake_transport_ops {
    char *(*next_buffer)(cake_transport *transport); /* buffer for the next fragment; NULL: none free now */
    void (*send)(cake_transport *transport, size_t bytes); /* sends that buffer */
    const char *(*arrived)(cake_transport *transport,
                           size_t *bytes);      /* the oldest received fragment, or NULL */
    void (*release)(cake_transport *transport); /* returns its buffer */
    bool (*sending)(cake_transport *transport); /* whether any fragment is still in flight */
    void (*close)(cake_transport *transport);
} cake_transport_ops;

/* Base of every transport. */
struct cake_transport {
    const cake_transport_ops *kind;
};

/* Opens the transport to a rank of the world, which must open its end too. */
cake_err cake_transport_open_mpi(const cake_comm *world, int peer, cake_transport **out);
size_t cake_transport_bytes(void); /* of all buffers */

cake_channel *cake_channel_open(cake_transport *transport); /* takes ownership of the transport */
void cake_channel_close(cake_channel *channel);             /* NULL is fine; nothing may be in flight */

/* Copies the message; len is at least 1. */
void cake_channel_send(cake_channel *channel, const void *message, size_t len);
/* The next complete message, valid until the next call; NULL: none. Call it often. */
const char *cake_channel_recv(cake_channel *channel, size_t *len);
/* Sends pending fragments. Call it often. */
void cake_channel_progress(cake_channel *channel);
/* Whether a sent message has not arrived yet. */
bool cake_channel_sending(const cake_channel *channel);

#endif
