/* SPDX-License-Identifier: Apache-2.0
 *
 * A fake GPU stream, shared by all fakes of NVIDIA's libraries: its work runs later, in order, when it is
 * queried.
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

/* The next work of a stream that has one. False: it is not done yet. */
static inline bool stream_step(stream *s)
{
    stream_work *next = s->work[s->done % STREAM_MOST];
    bool done = next->run(next);
    s->done += done;
    return done;
}

/* Waits while the stream is full. Without a stream (NULL) the work is done at once. */
static inline void stream_add(stream *s, stream_work *work)
{
    while (!s && !work->run(work))
        ;
    while (s && s->asked - s->done == STREAM_MOST)
        stream_step(s);
    if (s)
        s->work[s->asked++ % STREAM_MOST] = work;
}

#endif
