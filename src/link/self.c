/* SPDX-License-Identifier: Apache-2.0
 *
 * The link inside a rank: a queue of messages, which keep their owner.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "link/link.h"

typedef struct self {
    cake_link link;
    int depth, head, n;
    cake_wave_msg **queue; /* [depth] ring */
} self;

static void self_send(cake_link *link, cake_wave_msg *msg, size_t bytes)
{
    self *s = (self *)link;
    (void)bytes;
    CAKE_ASSERT(s->n < s->depth);
    s->queue[(s->head + s->n++) % s->depth] = msg;
}

static cake_wave_msg *self_arrived(cake_link *link)
{
    self *s = (self *)link;
    if (!s->n)
        return NULL;
    cake_wave_msg *msg = s->queue[s->head];
    s->head = (s->head + 1) % s->depth;
    s->n--;
    return msg;
}

static void self_close(cake_link *link)
{
    free(((self *)link)->queue);
    free(link);
}

cake_link *cake_link_open_self(int depth)
{
    static const cake_link_ops kind = {.send = self_send, .arrived = self_arrived, .close = self_close};
    self *s = cake_alloc(1, sizeof *s);
    *s =
        (self){.link = {.kind = &kind}, .depth = depth, .queue = cake_alloc((size_t)depth, sizeof *s->queue)};
    return &s->link;
}
