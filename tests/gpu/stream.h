/* SPDX-License-Identifier: Apache-2.0
 *
 * A stream of a GPU that is none, which all that stands in for NVIDIA's libraries shares: work that is done
 * later, in order, when somebody asks how far it is.
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

/* What has no more room waits. A stream that is none (NULL) does all at once. */
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
