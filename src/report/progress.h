/* SPDX-License-Identifier: Apache-2.0
 *
 * Progress of the run. Standard error gets a bar on a terminal, else a line per minute; --progress-file is
 * for programs. Rank 0 only.
 */
#ifndef CAKE_REPORT_PROGRESS_H
#define CAKE_REPORT_PROGRESS_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "record/record.h"
#include "types/shard.h"

typedef struct cake_counts {
    int64_t done, failed;      /* requests; failed ones are among the done */
    int64_t resumed;           /* results of earlier runs, which are not among them */
    int64_t resumed_failed;    /* of these */
    int64_t total;             /* of both; 0: not known before the input's end was read */
    int64_t prompt, generated; /* tokens of requests that are done, and of generated ones so far */
    cake_scored scored;        /* in this run and earlier ones */
    double share;              /* of the input that is answered; negative: unknown */
    double left;               /* seconds to its end; negative: unknown */
} cake_counts;

typedef struct cake_progress_options {
    const char *mode;    /* --progress: "auto", "none", "bar" or "line" */
    const char *file;    /* --progress-file; NULL: none */
    const char *results; /* named in the file; NULL: standard output */
    cake_shard shard;    /* named in the file */
} cake_progress_options;

/* The run begins: the progress file, if there is one, says so from here on. Strings are borrowed. */
void cake_progress_begin(const cake_progress_options *options);
/* The first wave is about to leave. */
void cake_progress_open(void);
/* Called often; looks at the clock and mostly returns. until_stop: seconds until a time limit stops the run,
 * or INFINITY. */
void cake_progress_tick(const cake_counts *counts, double until_stop);
void cake_progress_close(void); /* wipes the bar */
/* Append the bar's or the line's text `seconds` after the first wave, with the remaining time and whether a
 * time limit comes before. */
void cake_progress_bar(const cake_counts *counts, double seconds, double until_stop, cake_buf *out);
void cake_progress_line(const cake_counts *counts, double seconds, double until_stop, cake_buf *out);
/* The run ends before its first wave: --progress-file says so. Any thread. */
void cake_progress_stopped(void);
/* The run has ended in this way. */
void cake_progress_end(const cake_counts *counts, cake_err how);

#endif
