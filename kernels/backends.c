/* SPDX-License-Identifier: Apache-2.0
 *
 * The backends of this build, one row each.
 */
#include "config.h"
#include "kernels/device.h"

#include <stddef.h>

#ifdef HAVE_CUDA
extern const cake_backend cake_backend_cuda; /* kernels/cuda/device.c */
#endif

const cake_backend *const cake_backends[] = {
#ifdef HAVE_CUDA
    &cake_backend_cuda,
#endif
    NULL,
};
