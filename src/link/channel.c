/* SPDX-License-Identifier: Apache-2.0
 *
 * In: messages. Out: the same on the other rank. Each direction is one byte stream, cut into fragments
 * regardless of message boundaries; a message is its length and its content. Invariant: in[in_from..) begins
 * with a message's length.
 */
#include "link/channel.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct cake_channel {
    cake_transport *transport;
    cake_buf out, in;
    size_t out_from, in_from; /* offset of the first unsent byte of out; of the first unread byte of in */
};

cake_channel *cake_channel_open(cake_transport *transport)
{
    cake_channel *channel = cake_alloc(1, sizeof *channel);
    channel->transport = transport;
    return channel;
}

void cake_channel_close(cake_channel *channel)
{
    if (!channel)
        return;
    channel->transport->kind->close(channel->transport);
    cake_buf_free(&channel->out);
    cake_buf_free(&channel->in);
    free(channel);
}

/* Moves the rest to the beginning once it is smaller than what was consumed. */
static void compact(cake_buf *buf, size_t *from)
{
    size_t left = buf->len - *from;
    if (left > *from)
        return;
    if (left)
        memcpy(buf->data, buf->data + *from, left);
    cake_buf_cut(buf, left);
    *from = 0;
}

void cake_channel_send(cake_channel *channel, const void *message, size_t len)
{
    uint64_t header = len;
    CAKE_ASSERT(len > 0);
    cake_buf_add(&channel->out, &header, sizeof header);
    cake_buf_add(&channel->out, message, len);
    cake_channel_progress(channel);
}

/* Length of the oldest completely received message; 0: none. */
static size_t message_len(const cake_channel *channel)
{
    uint64_t header;
    size_t received = channel->in.len - channel->in_from;
    if (received < sizeof header)
        return 0;
    memcpy(&header, channel->in.data + channel->in_from, sizeof header);
    CAKE_ASSERT(header > 0 && header <= SIZE_MAX / 2);
    return received - sizeof header >= header ? (size_t)header : 0;
}

const char *cake_channel_recv(cake_channel *channel, size_t *len)
{
    size_t bytes;
    const char *fragment;
    compact(&channel->in, &channel->in_from);
    while (!message_len(channel) &&
           (fragment = channel->transport->kind->arrived(channel->transport, &bytes)) != NULL) {
        cake_buf_add(&channel->in, fragment, bytes);
        channel->transport->kind->release(channel->transport);
    }
    *len = message_len(channel);
    if (!*len)
        return NULL;
    const char *message = channel->in.data + channel->in_from + sizeof(uint64_t);
    channel->in_from += sizeof(uint64_t) + *len;
    return message;
}

void cake_channel_progress(cake_channel *channel)
{
    char *buffer;
    while (channel->out_from < channel->out.len &&
           (buffer = channel->transport->kind->next_buffer(channel->transport)) != NULL) {
        size_t left = channel->out.len - channel->out_from,
               bytes = left < CAKE_FRAGMENT_BYTES ? left : CAKE_FRAGMENT_BYTES;
        memcpy(buffer, channel->out.data + channel->out_from, bytes);
        channel->transport->kind->send(channel->transport, bytes);
        channel->out_from += bytes;
    }
    compact(&channel->out, &channel->out_from);
}

bool cake_channel_sending(const cake_channel *channel)
{
    return channel->out_from < channel->out.len || channel->transport->kind->sending(channel->transport);
}
