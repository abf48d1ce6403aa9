/* SPDX-License-Identifier: Apache-2.0
 *
 * In: letters. Out: the same on the other rank. dispatch/dispatcher.c and dispatch/client.c call.
 * Each way is one stream of bytes, cut into pieces without regard to letters: a letter is its length and what
 * it says.
 * Invariant: in[in_from..) begins with a letter's length.
 */
#include "link/channel.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct cake_channel {
    cake_transport *pipe;
    cake_buf out, in;
    size_t out_from, in_from; /* bytes of out before this have left; bytes of in before this were read */
};

cake_channel *cake_channel_open(cake_transport *pipe)
{
    cake_channel *mail = cake_alloc(1, sizeof *mail);
    mail->pipe = pipe;
    return mail;
}

void cake_channel_close(cake_channel *mail)
{
    if (!mail)
        return;
    mail->pipe->kind->close(mail->pipe);
    cake_buf_free(&mail->out);
    cake_buf_free(&mail->in);
    free(mail);
}

/* Moves what is left to the beginning, if it is less than what is gone. */
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

void cake_channel_send(cake_channel *mail, const void *letter, size_t len)
{
    uint64_t head = len;
    CAKE_ASSERT(len > 0);
    cake_buf_add(&mail->out, &head, sizeof head);
    cake_buf_add(&mail->out, letter, len);
    cake_channel_progress(mail);
}

/* The length of the oldest letter that has arrived completely; 0: there is none. */
static size_t whole(const cake_channel *mail)
{
    uint64_t head;
    size_t there = mail->in.len - mail->in_from;
    if (there < sizeof head)
        return 0;
    memcpy(&head, mail->in.data + mail->in_from, sizeof head);
    CAKE_ASSERT(head > 0 && head <= SIZE_MAX / 2);
    return there - sizeof head >= head ? (size_t)head : 0;
}

const char *cake_channel_recv(cake_channel *mail, size_t *len)
{
    size_t bytes;
    const char *piece;
    compact(&mail->in, &mail->in_from);
    while (!whole(mail) && (piece = mail->pipe->kind->arrived(mail->pipe, &bytes)) != NULL) {
        cake_buf_add(&mail->in, piece, bytes);
        mail->pipe->kind->release(mail->pipe);
    }
    *len = whole(mail);
    if (!*len)
        return NULL;
    const char *letter = mail->in.data + mail->in_from + sizeof(uint64_t);
    mail->in_from += sizeof(uint64_t) + *len;
    return letter;
}

void cake_channel_progress(cake_channel *mail)
{
    char *room;
    while (mail->out_from < mail->out.len && (room = mail->pipe->kind->room(mail->pipe)) != NULL) {
        size_t left = mail->out.len - mail->out_from,
               bytes = left < CAKE_FRAGMENT_BYTES ? left : CAKE_FRAGMENT_BYTES;
        memcpy(room, mail->out.data + mail->out_from, bytes);
        mail->pipe->kind->send(mail->pipe, bytes);
        mail->out_from += bytes;
    }
    compact(&mail->out, &mail->out_from);
}

bool cake_channel_sending(const cake_channel *mail)
{
    return mail->out_from < mail->out.len || mail->pipe->kind->leaving(mail->pipe);
}
