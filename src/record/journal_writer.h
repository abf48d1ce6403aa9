/* SPDX-License-Identifier: Apache-2.0
 *
 * RESULTS.partial of a running job. Opening it resumes what an earlier run of the same job left. Finished
 * lines are appended in groups; at the end it becomes RESULTS and RESULTS.job.
 */
#ifndef CAKE_RECORD_JOURNAL_WRITER_H
#define CAKE_RECORD_JOURNAL_WRITER_H

#include "record/finalize.h"
#include "record/journal_format.h"

typedef enum cake_resume { CAKE_RESUME_AUTO, CAKE_RESUME_NEVER, CAKE_RESUME_MUST } cake_resume;

typedef struct cake_journal_writer_options {
    const char *results; /* path of RESULTS */
    cake_resume resume;
    bool force;             /* drop files of another job */
    bool retry;             /* redo requests that failed in an earlier run */
    bool lossy;             /* RESULTS does not hold complete lines, so it cannot be reopened */
    bool copies;            /* all lines also exist elsewhere (merge), so a failure may be rolled back */
    cake_journal_head head; /* for a new job; borrowed */
} cake_journal_writer_options;

typedef struct cake_journal_writer cake_journal_writer;

/* Fails with a message: files of another job, another run is writing, directory not writable. */
cake_err cake_journal_writer_open(const cake_journal_writer_options *options, cake_journal_writer **out);
/* Logs once what is resumed, if anything. */
void cake_journal_writer_log_resume(cake_journal_writer *writer);
/* RESULTS is finished and belongs to this job (RESULTS.job); no file was opened. */
bool cake_journal_writer_finished(const cake_journal_writer *writer);
/* Turns a finished RESULTS back into a RESULTS.partial, to append more. */
cake_err cake_journal_writer_reopen(cake_journal_writer *writer);

const cake_journal_head *
cake_journal_writer_head(const cake_journal_writer *writer); /* of the resumed job, or the given one */
int64_t cake_journal_writer_resumed(const cake_journal_writer *writer); /* results kept from earlier runs */
int64_t
cake_journal_writer_count(const cake_journal_writer *writer); /* results of earlier runs and this one */
int64_t cake_journal_writer_failed(
    const cake_journal_writer *writer); /* error records of earlier runs and this one */
bool cake_journal_writer_has(const cake_journal_writer *writer, int64_t order);
/* For --retry-errors, when the input has changed. answered: the request has a successful result. sum:
 * checksum of the input lines that have one. corrected: accepts the changed input. recall must come first: it
 * reads which results of a finished RESULTS failed. */
cake_err cake_journal_writer_recall(cake_journal_writer *writer);
bool cake_journal_writer_answered(const cake_journal_writer *writer, int64_t order);
const cake_answered *cake_journal_writer_sum(const cake_journal_writer *writer);
void cake_journal_writer_corrected(cake_journal_writer *writer, const cake_input_checkpoint *read);
const cake_input_checkpoint *
cake_journal_writer_input_checkpoints(const cake_journal_writer *writer,
                                      size_t *n); /* what earlier runs have read */

void cake_journal_writer_read_to(cake_journal_writer *writer,
                                 const cake_input_checkpoint *read); /* what this run has read so far */
/* share: answered fraction of the input; left: seconds to the end; negative: unknown. */
void cake_journal_writer_reached(cake_journal_writer *writer, double share, double left);
/* line [len] includes the newline. On failure the file ends with the last complete group. */
cake_err cake_journal_writer_append(cake_journal_writer *writer, cake_entry entry, const char *line,
                                    size_t len);
/* Writes appended lines that have waited long enough, and checks that the file is still ours. Call it often.
 * Fails if the file cannot be written or if another process changed or removed it. */
cake_err cake_journal_writer_tick(cake_journal_writer *writer);
cake_err cake_journal_writer_flush(cake_journal_writer *writer);
/* Tokens of a request that an earlier run left unfinished; NULL: none. */
const cake_inflight *cake_journal_writer_inflight(const cake_journal_writer *writer, int64_t order, int *n);
/* Tokens of answers under way, from part->at on; they are written by cake_journal_writer_checkpoint,
 * after the group that grows. */
void cake_journal_writer_add_inflight(cake_journal_writer *writer, const cake_inflight *part);
cake_err cake_journal_writer_checkpoint(cake_journal_writer *writer);
/* Removes what this run appended: the input is not the job's, or copying failed. */
void cake_journal_writer_rollback(cake_journal_writer *writer);
double cake_journal_writer_cpu(const cake_journal_writer *writer); /* CPU seconds of the fsync thread */
/* Creates RESULTS and RESULTS.job. */
cake_err cake_journal_writer_finish(cake_journal_writer *writer, const cake_finalize_form *form);
/* Closes; removes a partial file without results. */
void cake_journal_writer_close(cake_journal_writer *writer);

/* Appends the identity that a run would resume; nothing if there is none. force: RESULTS itself will be
 * overwritten. */
void cake_journal_writer_read_identity(const char *results, bool force, cake_buf *identity);

#endif
