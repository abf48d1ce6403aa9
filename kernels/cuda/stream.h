/* SPDX-License-Identifier: Apache-2.0
 *
 * A second stream of the GPU, for a library that transfers GPU memory. Only the host orders the two streams:
 * it waits for what it needs.
 */
#ifndef CAKE_KERNELS_CUDA_STREAM_H
#define CAKE_KERNELS_CUDA_STREAM_H

#include "base/buf.h"

typedef struct cake_gpu_stream cake_gpu_stream;

/* n_mark: number of marks. NULL: it cannot be opened, and the reason is appended to why. */
cake_gpu_stream *cake_gpu_stream_open(int n_mark, cake_buf *why);
void cake_gpu_stream_close(cake_gpu_stream *queue); /* NULL is fine; waits for what is in it */
/* The runtime's cudaStream_t. */
void *cake_gpu_stream_stream(const cake_gpu_stream *queue);
/* Sets mark i after everything in the queue so far. */
void cake_gpu_stream_mark(cake_gpu_stream *queue, int i);
/* 1: the GPU has reached mark i, or it was never set; 0: not yet; -1: the GPU has failed, and the reason is
 * appended to why. */
int cake_gpu_stream_passed(cake_gpu_stream *queue, int i, cake_buf *why);

#endif
