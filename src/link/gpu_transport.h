/* SPDX-License-Identifier: Apache-2.0
 *
 * What carries bodies of waves from the memory of one rank's GPU to that of another's: NCCL (nccl.c), or an
 * MPI that reads GPUs' memory (mpi.c). Bodies of an edge arrive in the order they were sent.
 */
#ifndef CAKE_LINK_GPU_TRANSPORT_H
#define CAKE_LINK_GPU_TRANSPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "kernels/memory.h"
#include "link/comm.h"

typedef struct cake_gpu_transport cake_gpu_transport;

/* Each end has `depth` places. What is sent from a place, or received at it, must stay as it is until that is
 * done. */
typedef struct cake_gpu_transport_ops {
    bool alone; /* transfers go on even if nobody asks how far they are */
    void (*send)(cake_gpu_transport *transport, int place, const float *body, size_t n);
    void (*receive)(cake_gpu_transport *transport, int place, float *body, size_t n);
    bool (*done)(cake_gpu_transport *transport,
                 int place);                      /* whether what was last asked for at this place is done */
    void (*close)(cake_gpu_transport *transport); /* nothing may be under way */
} cake_gpu_transport_ops;

/* What every kind begins with. */
struct cake_gpu_transport {
    const cake_gpu_transport_ops *kind;
};

/* Whether this MPI can send from a GPU's memory. */
bool cake_gpu_transport_mpi_can(void);
cake_gpu_transport *cake_gpu_transport_open_mpi(const cake_comm *world, int peer, int edge, int depth);

/* NCCL's number of the library that is here (22809: 2.28.9); 0: the reason is appended to why. */
int cake_gpu_transport_nccl_version(cake_buf *why);

static inline const char *cake_gpu_transport_nccl_text(int version, char text[16])
{
    snprintf(text, 16, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
    return text;
}

/* Called by both ranks together, each of which has a GPU of its own open, with this memory; `leads` is
 * true on one of them. A message goes there and back before the transport counts as open. NULL: it could
 * not be opened, and the reason is appended to why if this end knows it; the other end may have opened. */
cake_gpu_transport *cake_gpu_transport_open_nccl(const cake_comm *world, int peer, bool leads, int depth,
                                                 const cake_memory *memory, cake_buf *why);

#endif
