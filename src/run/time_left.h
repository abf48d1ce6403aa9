/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a run will take yet: by tokens, and by what answers under way still may take.
 */
#ifndef CAKE_RUN_TIME_LEFT_H
#define CAKE_RUN_TIME_LEFT_H

#include <stdbool.h>

#include "run/batch_io.h"

/* Whether an answer ends at its limit and not before. */
bool cake_time_is_certain(const cake_sequence *sequence);
/* Seconds to the end of the input; negative: unknown. */
double cake_time_left(cake_batch_io *answers);

#endif
