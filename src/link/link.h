/* SPDX-License-Identifier: Apache-2.0
 *
 * An edge of the ring: waves enter at one end and leave at the other, in order. Edge 0 leads from the root to
 * the first hop, edge i from hop i-1 to hop i, the last one back to the root.
 *
 * A wave travels in a message buffer; its body is part of it, or travels separately from GPU to GPU
 * (link/gpu_transport.h). A buffer's owner is the receiving end where it arrived (NULL: the root's own
 * buffers); cake_wave_msg_release returns it there for the next message. A buffer given to send belongs to
 * the link until it is sent; the link then releases it.
 */
#ifndef CAKE_LINK_LINK_H
#define CAKE_LINK_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/memory.h"
#include "link/comm.h"
#include "link/gpu_transport.h"
#include "types/wave.h"

typedef struct cake_link cake_link;

typedef struct cake_wave_msg {
    cake_wave *wave;
    float *body; /* location of the body in GPU memory; NULL: in the wave */
    cake_link *owner;
    bool in_flight; /* being sent; only for buffers without owner */
} cake_wave_msg;

typedef struct cake_link_ops {
    void (*send)(cake_link *link, cake_wave_msg *msg, size_t bytes);
    float *(*buffer)(cake_link *link);          /* NULL: bodies are part of waves */
    cake_wave_msg *(*arrived)(cake_link *link); /* NULL for a sending end */
    /* Makes progress; returns whether a message is still being sent. NULL: nothing to do. */
    bool (*progress)(cake_link *link);
    /* Receiving end: takes a buffer back. NULL: owns no buffers. */
    void (*release)(cake_link *link, cake_wave_msg *msg);
    void (*close)(cake_link *link);
} cake_link_ops;

/* Base of every link. */
struct cake_link {
    const cake_link_ops *kind;
    int64_t bytes; /* sent or received */
};

/* An edge with both ends in one rank: sent messages have arrived, without a copy. depth: max messages in
 * flight. */
cake_link *cake_link_open_self(int depth);
/* One end of edge number `edge` between ranks of a world. The receiving end posts `depth` receives of up to
 * max_bytes at once. */
cake_err cake_link_open_mpi_out(const cake_comm *world, int to, int edge, int depth, cake_link **out);
cake_err cake_link_open_mpi_in(const cake_comm *world, int from, int edge, int depth, size_t max_bytes,
                               cake_link **out);

/* Sending end: where in GPU memory to put the body of the next wave; NULL: in the wave. */
float *cake_link_buffer(cake_link *link);
/* msg->body must be what cake_link_buffer returned. */
void cake_link_send(cake_link *link, cake_wave_msg *msg);
/* The oldest arrived message, or NULL. */
cake_wave_msg *cake_link_arrived(cake_link *link);
/* Makes progress; returns whether a message is still being sent. */
bool cake_link_progress(cake_link *link);
void cake_wave_msg_release(cake_wave_msg *msg);

/* An edge whose bodies travel separately: by a transport, or, without one, not at all, since both ends use
 * one GPU. */
typedef struct cake_edge_transport {
    cake_gpu_transport *transport; /* this end, borrowed; or NULL */
    const cake_memory *memory;     /* memory of this rank's GPU */
    size_t body_bytes;             /* of the largest body */
} cake_edge_transport;

/* Bytes of GPU memory that one end needs. */
size_t cake_gpu_link_bytes(int depth, size_t body_bytes);
cake_err cake_gpu_link_open_out(const cake_comm *world, int to, int edge, int depth,
                                const cake_edge_transport *with, cake_link **out);
cake_err cake_gpu_link_open_in(const cake_comm *world, int from, int edge, int depth, size_t max_bytes,
                               const cake_edge_transport *with, cake_link **out);

void cake_link_close(cake_link *link); /* NULL is fine; nothing may be in flight */

#endif
