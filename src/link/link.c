/* SPDX-License-Identifier: Apache-2.0
 *
 * Dispatches to the kind of link. Invariant: a message returns to its pool without a body, so no wave
 * inherits the location of an earlier body.
 */
#include "link/link.h"

float *cake_link_buffer(cake_link *link)
{
    return link->kind->buffer ? link->kind->buffer(link) : NULL;
}

void cake_link_send(cake_link *link, cake_wave_msg *msg)
{
    const cake_wave *wave = msg->wave;
    size_t bytes = msg->body ? cake_wave_header_bytes(wave->n_row, wave->n_change)
                             : cake_wave_bytes(wave->n_row, wave->n_change, wave->dim);
    link->bytes += (int64_t)bytes;
    link->kind->send(link, msg, bytes);
}

cake_wave_msg *cake_link_arrived(cake_link *link)
{
    return link->kind->arrived(link);
}

bool cake_link_progress(cake_link *link)
{
    return link->kind->progress && link->kind->progress(link);
}

void cake_wave_msg_release(cake_wave_msg *msg)
{
    msg->body = NULL;
    if (msg->owner)
        msg->owner->kind->release(msg->owner, msg);
    else
        msg->in_flight = false;
}

void cake_link_close(cake_link *link)
{
    if (link)
        link->kind->close(link);
}

size_t cake_gpu_link_bytes(int depth, size_t body_bytes)
{
    return (size_t)depth * cake_arena_round(body_bytes);
}
