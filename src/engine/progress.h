/* SPDX-License-Identifier: Apache-2.0
 *
 * How far a replica is: the engine counts, the dispatcher goes by it.
 */
#ifndef CAKE_ENGINE_PROGRESS_H
#define CAKE_ENGINE_PROGRESS_H

#include <stdint.h>

/* What a replica has done since the beginning. */
typedef struct cake_replica_progress {
    int64_t begun;     /* requests whose prompts are under way or computed */
    int64_t begun_tok; /* tokens of these prompts */
    int64_t rows;      /* rows that went through its layers */
} cake_replica_progress;

#endif
