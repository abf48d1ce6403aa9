/* SPDX-License-Identifier: Apache-2.0
 *
 * Stubs for a build without NCCL or CUDA.
 */
#include "link/gpu_transport.h"

int cake_gpu_transport_nccl_version(cake_buf *why)
{
    cake_buf_adds(why, "this build has no NCCL");
    return 0;
}

cake_gpu_transport *cake_gpu_transport_open_nccl(const cake_comm *world, int peer, bool leads, int depth,
                                                 const cake_memory *memory, cake_buf *why)
{
    (void)world, (void)peer, (void)leads, (void)depth, (void)memory;
    cake_gpu_transport_nccl_version(why);
    return NULL;
}
