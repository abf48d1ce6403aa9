/* SPDX-License-Identifier: Apache-2.0
 *
 * A stream of the GPU that is open beside the one of operations: for a library that moves what is in its
 * memory. Nothing orders the two but the host, which waits for what it needs.
 */
#ifndef CAKE_KERNELS_CUDA_QUEUE_H
#define CAKE_KERNELS_CUDA_QUEUE_H

#include "base/buf.h"

typedef struct cake_queue cake_queue;

/* n_mark: how many marks it has. NULL: it cannot be opened, and the reason is appended to why. */
cake_queue *cake_queue_open(int n_mark, cake_buf *why);
void cake_queue_close(cake_queue *queue); /* NULL is fine; waits for what is in it */
/* The runtime's cudaStream_t. */
void *cake_queue_stream(const cake_queue *queue);
/* Sets mark i behind all that is in the queue so far. */
void cake_queue_mark(cake_queue *queue, int i);
/* 1: the GPU has come to where mark i was last set, or it was never set; 0: not yet; -1: the GPU has failed,
 * and the reason is appended to why. */
int cake_queue_passed(cake_queue *queue, int i, cake_buf *why);

#endif
