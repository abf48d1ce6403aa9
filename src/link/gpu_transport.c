/* SPDX-License-Identifier: Apache-2.0
 *
 * The libraries of this build that carry bodies between GPUs: NCCL, or none.
 */
#include "link/gpu_transport.h"
#include "config.h"

#ifdef HAVE_NCCL
extern const cake_gpu_library cake_gpu_library_nccl; /* nccl.c */
static const cake_gpu_library *const nccl = &cake_gpu_library_nccl;
#else
static const cake_gpu_library *const nccl = NULL;
#endif

int cake_gpu_transport_nccl_version(cake_buf *why)
{
    if (nccl)
        return nccl->version(why);
    cake_buf_adds(why, "this build has no NCCL");
    return 0;
}

cake_gpu_transport *cake_gpu_transport_open_nccl(const cake_comm *world, int peer, bool leads, int depth,
                                                 const cake_memory *memory, cake_buf *why)
{
    if (nccl)
        return nccl->open(world, peer, leads, depth, memory, why);
    cake_gpu_transport_nccl_version(why);
    return NULL;
}
