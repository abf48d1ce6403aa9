/* SPDX-License-Identifier: Apache-2.0
 *
 * An edge between two GPUs. A wave's metadata goes by MPI, as on any edge; its body goes by a transport from
 * GPU memory to GPU memory. Each end has as many body buffers as waves may be in flight.
 *
 * Invariant: a body is complete before the transport gets it, and before its wave counts as arrived; so the
 * code that computes is unaware of transports.
 */
#include <sched.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "link/link.h"

typedef struct gpu_link {
    cake_link link;
    cake_link *header;             /* MPI link for metadata, owned */
    cake_gpu_transport *transport; /* borrowed */
    const cake_memory *memory;
    cake_arena arena;   /* body buffers */
    size_t each;        /* bytes of a buffer */
    int depth, next, n; /* number of body buffers; the next one to use; how many before it are in flight */
    cake_wave_msg **arriving; /* [depth] receiving end: the message of each buffer's body */
} gpu_link;

static float *buffer_at(const gpu_link *d, int i)
{
    return (float *)(d->arena.base + (size_t)i * d->each);
}

static int oldest(const gpu_link *d)
{
    return (d->next + d->depth - d->n) % d->depth;
}

static size_t floats_of(const gpu_link *d, const cake_wave *wave)
{
    size_t n = (size_t)wave->n_row * (size_t)wave->dim;
    CAKE_ASSERT(n * sizeof(float) <= d->each);
    return n;
}

/* Frees the buffers of bodies that were sent; returns whether one is still in flight. */
static bool still_sending(gpu_link *d)
{
    while (d->n && d->transport->kind->done(d->transport, oldest(d)))
        d->n--;
    return d->n > 0;
}

static float *next_buffer(cake_link *link)
{
    gpu_link *d = (gpu_link *)link;
    while (still_sending(d) && d->n == d->depth)
        sched_yield();
    return buffer_at(d, d->next);
}

static void gpu_link_send(cake_link *link, cake_wave_msg *msg, size_t bytes)
{
    gpu_link *d = (gpu_link *)link;
    if (msg->body) {
        size_t n = floats_of(d, msg->wave);
        CAKE_ASSERT(msg->body == buffer_at(d, d->next) && d->n < d->depth);
        d->transport->kind->send(d->transport, d->next, msg->body, n);
        link->bytes += (int64_t)(n * sizeof(float));
        d->next = (d->next + 1) % d->depth;
        d->n++;
    }
    d->header->kind->send(d->header, msg, bytes);
}

static bool sending(cake_link *link)
{
    gpu_link *d = (gpu_link *)link;
    bool header = cake_link_progress(d->header), body = still_sending(d);
    return header || (body && !d->transport->kind->alone);
}

/* Posts receives for the bodies of arrived waves, as far as buffers are free. The stop wave has no body. */
static bool listen(cake_link *link)
{
    gpu_link *d = (gpu_link *)link;
    cake_link_progress(d->header);
    for (cake_wave_msg *msg; d->n < d->depth && (msg = cake_link_arrived(d->header)) != NULL; d->n++) {
        size_t n = floats_of(d, msg->wave);
        msg->body = n ? buffer_at(d, d->next) : NULL;
        if (n)
            d->transport->kind->receive(d->transport, d->next, msg->body, n);
        d->arriving[d->next] = msg;
        d->next = (d->next + 1) % d->depth;
        link->bytes +=
            (int64_t)(n * sizeof(float) + cake_wave_header_bytes(msg->wave->n_row, msg->wave->n_change));
    }
    return false;
}

static cake_wave_msg *gpu_link_arrived(cake_link *link)
{
    gpu_link *d = (gpu_link *)link;
    listen(link);
    if (!d->n)
        return NULL;
    cake_wave_msg *msg = d->arriving[oldest(d)];
    if (msg->body && !d->transport->kind->done(d->transport, oldest(d)))
        return NULL;
    d->n--;
    return msg;
}

static void gpu_link_close(cake_link *link)
{
    gpu_link *d = (gpu_link *)link;
    while (!d->arriving && still_sending(d))
        sched_yield();
    cake_link_close(d->header);
    cake_memory_close(d->memory, &d->arena);
    free(d->arriving);
    free(d);
}

static const cake_link_ops out_kind = {
    .buffer = next_buffer, .send = gpu_link_send, .progress = sending, .close = gpu_link_close};
static const cake_link_ops in_kind = {
    .arrived = gpu_link_arrived, .progress = listen, .close = gpu_link_close};

/* header: the MPI link of this end; the new link takes ownership. */
static cake_err open_gpu_link(const cake_link_ops *kind, cake_link *header, const cake_edge_transport *with,
                              int depth, cake_link **out)
{
    gpu_link *d = cake_alloc(1, sizeof *d);
    *d = (gpu_link){.link = {.kind = kind},
                    .header = header,
                    .transport = with->transport,
                    .memory = with->memory,
                    .each = cake_arena_round(with->body_bytes),
                    .depth = depth};
    cake_err err = cake_memory_open(d->memory, &d->arena, "bodies of waves",
                                    cake_gpu_link_bytes(depth, with->body_bytes));
    if (err) {
        gpu_link_close(&d->link);
        return err;
    }
    if (kind == &in_kind)
        d->arriving = cake_alloc((size_t)depth, sizeof *d->arriving);
    *out = &d->link;
    return CAKE_OK;
}

cake_err cake_gpu_link_open_out(const cake_comm *world, int to, int edge, int depth,
                                const cake_edge_transport *with, cake_link **out)
{
    cake_link *header = NULL;
    cake_err err = cake_link_open_mpi_out(world, to, edge, depth, &header);
    return err ? err : open_gpu_link(&out_kind, header, with, depth, out);
}

cake_err cake_gpu_link_open_in(const cake_comm *world, int from, int edge, int depth, size_t max_bytes,
                               const cake_edge_transport *with, cake_link **out)
{
    cake_link *header = NULL;
    cake_err err = cake_link_open_mpi_in(world, from, edge, depth, max_bytes, &header);
    return err ? err : open_gpu_link(&in_kind, header, with, depth, out);
}
