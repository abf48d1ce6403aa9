/* SPDX-License-Identifier: Apache-2.0
 *
 * A stream of a GPU that is none, which the executor's queues (memory.c) and what stands in for NCCL (nccl.c) share: work that is
 * done later, in order, when somebody asks how far it is.
 */
#ifndef CAKE_TESTS_GPU_STREAM_H
#define CAKE_TESTS_GPU_STREAM_H

#include <stdbool.h>

typedef struct stream_work {
    bool (*run)(struct stream_work *work); /* false: not yet; frees it when it is done */
} stream_work;

enum { STREAM_MOST = 4096 };

typedef struct stream {
    stream_work *work[STREAM_MOST];
    int asked, done; /* works, from the start */
    int questions;
} stream;

#endif
