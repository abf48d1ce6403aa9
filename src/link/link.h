/* SPDX-License-Identifier: Apache-2.0
 *
 * An edge of the ring: waves go in at one end and come out at the other, in order. Edge 0 leads from the
 * root to the first hop, edge i from hop i-1 to hop i, the last one back to the root.
 *
 * A wave travels in a msg, and its body in it or beside it, from one GPU's memory to another's
 * (link/gpu_transport.h). A msg's owner is the incoming end it arrived at (NULL: the root's own
 * msgs); cake_wave_msg_release takes it owner, where the next message can arrive in it. A msg that
 * is given to send belongs to the link until it is sent, and is then released by the link.
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
    float *body; /* where a GPU has the body; NULL: in the wave */
    cake_link *owner;
    bool in_flight; /* it is being sent, or on its way; only for msgs without a owner */
} cake_wave_msg;

typedef struct cake_link_ops {
    void (*send)(cake_link *link, cake_wave_msg *msg, size_t bytes);
    float *(*place)(cake_link *link);           /* NULL: bodies go in waves */
    cake_wave_msg *(*arrived)(cake_link *link); /* NULL for a sending end */
    /* Lets messages move; returns whether one is still leaving. NULL: there is nothing to do. */
    bool (*progress)(cake_link *link);
    /* Of a receiving end: takes a msg owner. NULL: no msg has its owner here. */
    void (*release)(cake_link *link, cake_wave_msg *msg);
    void (*close)(cake_link *link);
} cake_link_ops;

/* What every kind begins with. */
struct cake_link {
    const cake_link_ops *kind;
    int64_t bytes; /* sent or received */
};

/* An edge with both ends in one rank: what is sent has arrived; nothing is copied. depth: the most msgs
 * under way. */
cake_link *cake_link_open_self(int depth);
/* One end of edge number `edge` between ranks of a world. Receiving posts depth receives of up to max_bytes
 * at once. */
cake_err cake_link_open_mpi_out(const cake_comm *world, int to, int edge, int depth, cake_link **out);
cake_err cake_link_open_mpi_in(const cake_comm *world, int from, int edge, int depth, size_t max_bytes,
                               cake_link **out);

/* Of a sending end: where in the GPU's memory the body of the next wave should be put; NULL: in the wave. */
float *cake_link_place(cake_link *link);
/* msg->body has to be what cake_link_place returned. */
void cake_link_send(cake_link *link, cake_wave_msg *msg);
/* The oldest msg that has arrived, or NULL. */
cake_wave_msg *cake_link_arrived(cake_link *link);
/* Lets messages of this end move on; returns whether one is still leaving. */
bool cake_link_progress(cake_link *link);
void cake_wave_msg_release(cake_wave_msg *msg);

/* An edge whose bodies do not travel in their waves: they go by a transport or, without one, stay where
 * they are, since both ends are on one GPU. */
typedef struct cake_edge_transport {
    cake_gpu_transport *transport; /* its end here, borrowed; or NULL */
    const cake_memory *memory;     /* the memory of this rank's GPU */
    size_t body_bytes;             /* of the largest body */
} cake_edge_transport;

/* Bytes that one end takes of that memory. */
size_t cake_gpu_link_bytes(int depth, size_t body_bytes);
cake_err cake_gpu_link_open_out(const cake_comm *world, int to, int edge, int depth,
                                const cake_edge_transport *beside, cake_link **out);
cake_err cake_gpu_link_open_in(const cake_comm *world, int from, int edge, int depth, size_t max_bytes,
                               const cake_edge_transport *beside, cake_link **out);

void cake_link_close(cake_link *link); /* NULL is fine; nothing may be under way */

#endif
