/* SPDX-License-Identifier: Apache-2.0
 *
 * Estimates how long a run will still take, from its token rate and the expected length of unfinished
 * answers.
 */
#ifndef CAKE_RUN_TIME_LEFT_H
#define CAKE_RUN_TIME_LEFT_H

#include <stdbool.h>

#include "run/batch_io.h"

/* Whether an answer always reaches its token limit. */
bool cake_time_is_certain(const cake_sequence *sequence);
/* Seconds to the end of the input; negative: unknown. */
double cake_time_left(cake_batch_io *io);

#endif
