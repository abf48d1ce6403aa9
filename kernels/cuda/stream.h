/* SPDX-License-Identifier: Apache-2.0
 *
 * A second stream of the GPU, in addition to that of operations, for a library that moves GPU memory. Only
 * the host orders the two streams, by waiting.
 */
#ifndef CAKE_KERNELS_CUDA_STREAM_H
#define CAKE_KERNELS_CUDA_STREAM_H

#include "base/buf.h"

typedef struct cake_gpu_stream cake_gpu_stream;

/* n_mark: number of events. NULL: it cannot be opened, and the reason is appended to why. */
cake_gpu_stream *cake_gpu_stream_open(int n_mark, cake_buf *why);
void cake_gpu_stream_close(cake_gpu_stream *queue); /* NULL is fine; waits for what is in it */
/* The runtime's cudaStream_t. */
void *cake_gpu_stream_stream(const cake_gpu_stream *queue);
/* Records event i after all that has been enqueued so far. */
void cake_gpu_stream_mark(cake_gpu_stream *queue, int i);
/* 1: the GPU has reached event i, or it was never recorded; 0: not yet; -1: the GPU has failed, and the
 * reason is appended to why. */
int cake_gpu_stream_passed(cake_gpu_stream *queue, int i, cake_buf *why);

#endif
