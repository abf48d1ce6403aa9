/* SPDX-License-Identifier: Apache-2.0
 *
 * RESULTS.job stays next to a finished RESULTS and identifies its job. With it the same command knows that
 * all is done, or which requests a larger input adds. Format: docs/formats.md.
 */
#ifndef CAKE_RECORD_JOB_H
#define CAKE_RECORD_JOB_H

#include "record/finalize.h"
#include "record/journal_format.h"

typedef struct cake_job {
    cake_journal_header header;
    int64_t requests, failed;
    cake_answered answered;
    cake_input_checkpoint *marks; /* [n_mark] checkpoints of the input; owned */
    size_t n_mark;
    cake_file_digest results; /* size and checksum of RESULTS */
} cake_job;

/* Writes to a temporary file and renames it. Returns 0 or errno. */
int cake_job_write(const char *path, const cake_job *job);
/* *out is owned. False, without a message: no readable file. */
bool cake_job_read(const char *path, cake_job *out);
const char *cake_job_fault(const char *path); /* why it was not read, for messages: "is missing" */
void cake_job_free(cake_job *job);            /* zeros are fine */
/* Whether the file has the size and checksum that the job recorded. */
bool cake_job_holds(const cake_job *job, int fd);

#endif
