/* SPDX-License-Identifier: Apache-2.0
 *
 * Transport of wave bodies between the memories of two GPUs: NCCL (nccl.c) or a CUDA-aware MPI (mpi.c).
 * Bodies of an edge arrive in the order they were sent.
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

/* Each end has `depth` buffers. A buffer must not change while a transfer uses it. */
typedef struct cake_gpu_transport_ops {
    bool alone; /* transfers progress without calls */
    void (*send)(cake_gpu_transport *transport, int buffer, const float *body, size_t n);
    void (*receive)(cake_gpu_transport *transport, int buffer, float *body, size_t n);
    bool (*done)(cake_gpu_transport *transport,
                 int buffer);                     /* whether the latest transfer of this buffer is done */
    void (*close)(cake_gpu_transport *transport); /* nothing may be in flight */
} cake_gpu_transport_ops;

/* Base of every transport. */
struct cake_gpu_transport {
    const cake_gpu_transport_ops *kind;
};

/* Whether this MPI can send from GPU memory. */
bool cake_gpu_transport_mpi_can(void);
cake_gpu_transport *cake_gpu_transport_open_mpi(const cake_comm *world, int peer, int edge, int depth);

/* A library that carries bodies between GPUs. */
typedef struct cake_gpu_library {
    int (*version)(cake_buf *why);
    cake_gpu_transport *(*open)(const cake_comm *world, int peer, bool leads, int depth,
                                const cake_memory *memory, cake_buf *why);
} cake_gpu_library;

/* Version number of the installed NCCL library (22809: 2.28.9); 0: the reason is appended to why. */
int cake_gpu_transport_nccl_version(cake_buf *why);

static inline const char *cake_gpu_transport_nccl_text(int version, char text[16])
{
    snprintf(text, 16, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
    return text;
}

/* Called by both ranks together, each with its own GPU open and this memory; `leads` is true on one of them.
 * The transport counts as open after one message went both ways. NULL: failed; the reason is appended to why
 * if this end knows it. The other end may have opened. */
cake_gpu_transport *cake_gpu_transport_open_nccl(const cake_comm *world, int peer, bool leads, int depth,
                                                 const cake_memory *memory, cake_buf *why);

#endif
