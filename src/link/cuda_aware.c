/* SPDX-License-Identifier: Apache-2.0
 *
 * Detects whether this MPI accepts pointers to GPU memory ("CUDA-aware"). Each MPI reports it in its own way,
 * if at all.
 */
#include <mpi.h>
#if defined(OPEN_MPI) && OPEN_MPI
#include <mpi-ext.h>
#endif

#include "link/gpu_transport.h"

bool cake_gpu_transport_mpi_can(void)
{
#if defined(MPIX_CUDA_AWARE_SUPPORT) || (defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 40000000)
    return MPIX_Query_cuda_support() > 0;
#else
    return false;
#endif
}
