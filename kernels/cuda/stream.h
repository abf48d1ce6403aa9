/* SPDX-License-Identifier: Apache-2.0
 *
 * A stream of the GPU that is open beside the one of operations: for a library that moves what is in its
 * memory. Nothing orders the two but the host, which waits for what it needs.
 */
#ifndef CAKE_KERNELS_CUDA_STREAM_H
#define CAKE_KERNELS_CUDA_STREAM_H

#include "base/buf.h"

typedef struct cake_gpu_stream cake_gpu_stream;

/* n_mark: how many marks it has. NULL: it cannot be opened, and the reason is appended to why. */
cake_gpu_stream *cake_gpu_stream_open(int n_mark, cake_buf *why);
void cake_gpu_stream_close(cake_gpu_stream *queue); /* NULL is fine; waits for what is in it */
/* The runtime's cudaStream_t. */
void *cake_gpu_stream_stream(const cake_gpu_stream *queue);
/* Sets mark i behind all that is in the queue so far. */
void cake_gpu_stream_mark(cake_gpu_stream *queue, int i);
/* 1: the GPU has come to where mark i was last set, or it was never set; 0: not yet; -1: the GPU has failed,
 * and the reason is appended to why. */
int cake_gpu_stream_passed(cake_gpu_stream *queue, int i, cake_buf *why);

#endif
