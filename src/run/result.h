/* SPDX-License-Identifier: Apache-2.0
 *
 * Results of requests: a sequence that has finished, or failed, becomes a record.
 */
#ifndef CAKE_RUN_RESULT_H
#define CAKE_RUN_RESULT_H

#include "run/batch_io.h"

/* Gives the record of a lead to the recorder, which must exist. */
cake_err cake_result_write(cake_batch_io *io, const cake_sequence *lead);
/* Adds the scores of a lead's texts, if they were wanted, to the report's sums; the first time what earlier
 * runs scored, too. */
void cake_result_count(cake_batch_io *io, const cake_sequence *lead);

#endif
