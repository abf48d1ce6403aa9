/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory and the stream of this rank's GPU. The stream orders all work.
 */
#ifndef CAKE_KERNELS_CUDA_MEMORY_H
#define CAKE_KERNELS_CUDA_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/device.h"
#include "kernels/memory.h"

extern const cake_memory cake_cuda_memory;

/* Opens the GPU that the other functions use. device: the runtime's number; text: its name in messages;
 * overlaps: kernels were compiled to code that waits for the kernel before (device_util.h); launch: as of
 * cake_device_open. Logs errors. */
cake_err cake_cuda_open(int device, const char *text, bool overlaps, cake_gpu_launch launch);
void cake_cuda_close(void); /* not open is fine */
/* Whether kernels may begin before the one before has ended (device_util.h). */
bool cake_cuda_overlaps(void);
int cake_cuda_block_memory(void);
/* Free bytes of the GPU's memory. */
int64_t cake_cuda_free(void);

/* Copies n rows of `bytes` bytes of a matrix from the host's memory to the GPU's, with so many bytes from one
 * row to the next on each side; they are there when it returns. Called by any thread. */
void cake_cuda_upload_matrix(void *to, size_t to_step, const void *from, size_t from_step, size_t bytes,
                             int n);
/* The host's copy of rows in the GPU's memory, as upload_rows stored it. */
const cake_row *cake_cuda_rows(const cake_row *rows);
/* Registers a kernel; cake_cuda_open loads all that are registered. Returns true. */
bool cake_cuda_has(const void *kernel);
/* Records the result of a kernel's launch, a cudaError_t; cake_memory's check reports errors. */
void cake_cuda_launched(int error, const char *kernel);
/* Records that a library failed at `doing`, likewise. */
void cake_cuda_failed(const char *doing);
/* GPU memory that one operation may use between two kernels: CAKE_CUDA_WORKSPACE bytes. */
void *cake_cuda_workspace(void);
/* GPU memory for counting finished blocks of a kernel: CAKE_CUDA_ARRIVALS zeros, between kernels. */
int32_t *cake_cuda_arrived(void);

#define CAKE_CUDA_WORKSPACE ((size_t)64 << 20)
#define CAKE_CUDA_ARRIVALS  (1 << 18)

#endif
