/* SPDX-License-Identifier: Apache-2.0
 *
 * Progress of a replica: the engine counts, the dispatcher decides by it.
 */
#ifndef CAKE_ENGINE_PROGRESS_H
#define CAKE_ENGINE_PROGRESS_H

#include <stdint.h>

typedef struct cake_replica_progress {
    int64_t begun;        /* requests whose prompts are in flight or computed */
    int64_t begun_tokens; /* tokens of these prompts */
    int64_t rows;         /* rows that were sent through its layers */
} cake_replica_progress;

#endif
