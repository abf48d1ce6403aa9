/* SPDX-License-Identifier: Apache-2.0
 *
 * RESULTS.job: what stays beside a finished RESULTS and says what job it is of, so that the same command
 * given again knows that all is done, and what a larger input adds to it. docs/formats.md has the format.
 */
#ifndef CAKE_RECORD_JOB_H
#define CAKE_RECORD_JOB_H

#include "record/finalize.h"
#include "record/journal_format.h"

typedef struct cake_job {
    cake_journal_head head;
    int64_t requests, failed;
    cake_answered answered;
    cake_input_checkpoint *marks; /* [n_mark] of the input; owned */
    size_t n_mark;
    cake_file_digest results; /* what RESULTS was written as */
} cake_job;

/* Writes path through a temporary file. 0, or errno. */
int cake_job_write(const char *path, const cake_job *job);
/* False: there is none that can be read; nothing is said. *out is owned. */
bool cake_job_read(const char *path, cake_job *out);
void cake_job_free(cake_job *job); /* zeros are fine */
/* Whether the file is what the job says of its results. */
bool cake_job_holds(const cake_job *job, int fd);

#endif
