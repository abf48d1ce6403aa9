/* SPDX-License-Identifier: Apache-2.0
 *
 * How far the run is, on standard error: a bar on a terminal, a line a minute otherwise. Rank 0 only.
 */
#ifndef CAKE_RUN_PROGRESS_H
#define CAKE_RUN_PROGRESS_H

#include <stdint.h>

typedef struct cake_counts {
    int64_t done, failed;      /* requests; failed ones are among the done */
    int64_t resumed;           /* results of earlier runs, which are not among them */
    int64_t prompt, generated; /* tokens of requests that are done, and of generated ones so far */
    double share;              /* of the input that is answered; negative: unknown */
} cake_counts;

/* mode: "auto", "bar", "line", "none". */
void cake_progress_open(const char *mode);
/* Called often; looks at the clock and mostly returns. */
void cake_progress_tick(const cake_counts *counts);
void cake_progress_close(void); /* wipes the bar */

#endif
