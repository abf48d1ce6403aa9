/* SPDX-License-Identifier: Apache-2.0
 *
 * The conductor's side of the cut: sequences from the feed go to the roots of replicas, finished ones become
 * records (or the stream of `run -p`). World rank 0 only.
 */
#ifndef CAKE_RUN_ANSWERS_H
#define CAKE_RUN_ANSWERS_H

#include "run/feed.h"
#include "run/report.h"
#include "run/root.h"

typedef struct cake_answers {
    cake_feed feed;
    cake_recorder *recorder; /* NULL: streaming */
    size_t streamed;         /* bytes of the answer that are out */
    bool broken;             /* standard output cannot be written */
    int64_t taken;           /* requests read so far */
    cake_counts counts;
    cake_times ttft, itl;
} cake_answers;

/* Where results go; before anything is loaded. */
cake_err cake_answers_open(const cake_options *options, cake_answers *answers);
void cake_answers_close(cake_answers *answers);
/* After the last sequence: the result file appears. */
cake_err cake_answers_finish(cake_answers *answers);
cake_conductor cake_answers_conductor(cake_answers *answers);

#endif
