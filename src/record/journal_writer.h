/* SPDX-License-Identifier: Apache-2.0
 *
 * RESULTS.partial while a run writes it: what an earlier run of the same job left is gone on from, finished
 * lines are appended in groups, and at the end it becomes RESULTS, with RESULTS.job beside it.
 */
#ifndef CAKE_RECORD_JOURNAL_WRITER_H
#define CAKE_RECORD_JOURNAL_WRITER_H

#include "record/finalize.h"
#include "record/journal_format.h"

typedef enum cake_resume { CAKE_RESUME_AUTO, CAKE_RESUME_NEVER, CAKE_RESUME_MUST } cake_resume;

typedef struct cake_journal_writer_options {
    const char *results; /* path of RESULTS */
    cake_resume resume;
    bool force;             /* what is of another job is dropped */
    bool retry;             /* error records of an earlier run do not count as results */
    bool lossy;             /* RESULTS does not hold all of the lines: it cannot be gone on from */
    bool copies;            /* nothing is written that is not elsewhere, too: what fails may be undone */
    cake_journal_head head; /* of a job that begins; borrowed */
} cake_journal_writer_options;

typedef struct cake_journal_writer cake_journal_writer;

/* Says why not: files of another job, another run is writing there, the directory cannot be written to. */
cake_err cake_journal_writer_open(const cake_journal_writer_options *options, cake_journal_writer **out);
/* Says what it goes on from, if anything; once. */
void cake_journal_writer_log_resume(cake_journal_writer *writer);
/* RESULTS is there and finished: nothing was opened, and the job is that of RESULTS.job. */
bool cake_journal_writer_finished(const cake_journal_writer *writer);
/* Its lines become a new RESULTS.partial, to which others are added. */
cake_err cake_journal_writer_reopen(cake_journal_writer *writer);

const cake_journal_head *
cake_journal_writer_head(const cake_journal_writer *writer); /* of what it goes on from, or the given one */
int64_t
cake_journal_writer_resumed(const cake_journal_writer *writer);       /* results of earlier runs that stand */
int64_t cake_journal_writer_count(const cake_journal_writer *writer); /* these, and those of this run */
int64_t
cake_journal_writer_failed(const cake_journal_writer *writer); /* error records, with those of this run */
bool cake_journal_writer_has(const cake_journal_writer *writer, int64_t order);
/* Lines of requests that failed may be corrected. Whether a request has an answer, which is no error; the
 * sum of the lines that have one; and that the input, read so far, is another one now, though these lines
 * are what they were. What of a finished RESULTS failed has to be recalled first. */
cake_err cake_journal_writer_recall(cake_journal_writer *writer);
bool cake_journal_writer_answered(const cake_journal_writer *writer, int64_t order);
const cake_answered *cake_journal_writer_sum(const cake_journal_writer *writer);
void cake_journal_writer_corrected(cake_journal_writer *writer, const cake_input_checkpoint *read);
const cake_input_checkpoint *cake_journal_writer_input_checkpoints(const cake_journal_writer *writer,
                                                                   size_t *n); /* what earlier runs read */

void cake_journal_writer_read_to(cake_journal_writer *writer,
                                 const cake_input_checkpoint *read); /* how far this run has read */
/* share: of the input that is answered; left: seconds to its end; negative: unknown. */
void cake_journal_writer_reached(cake_journal_writer *writer, double share, double left);
/* entry's line [len], with its newline. On failure the file ends with the last whole group. */
cake_err cake_journal_writer_append(cake_journal_writer *writer, cake_entry entry, const char *line,
                                    size_t len);
/* What was appended is written, if it has waited for a while, and the file is looked at: call often. An
 * error is that of a file that cannot be written, or that somebody else has changed or removed. */
cake_err cake_journal_writer_tick(cake_journal_writer *writer);
cake_err cake_journal_writer_flush(cake_journal_writer *writer);
/* The tokens of a request that an earlier run began; NULL: it did not. */
const cake_inflight *cake_journal_writer_inflight(const cake_journal_writer *writer, int64_t order, int *n);
/* Tokens of answers under way, from part->at on; they are written by cake_journal_writer_checkpoint,
 * after the group that grows. */
void cake_journal_writer_add_inflight(cake_journal_writer *writer, const cake_inflight *part);
cake_err cake_journal_writer_checkpoint(cake_journal_writer *writer);
/* The input is not that of the job, or copying has failed: what this run appended goes. */
void cake_journal_writer_rollback(cake_journal_writer *writer);
double cake_journal_writer_cpu(const cake_journal_writer *writer); /* seconds that its thread has computed */
/* RESULTS and RESULTS.job appear. */
cake_err cake_journal_writer_finish(cake_journal_writer *writer, const cake_finalize_form *form);
/* Closes; a partial file without any result goes. */
void cake_journal_writer_close(cake_journal_writer *writer);

/* The identity that a run would go on from, appended; nothing, if there is none. force: RESULTS itself is
 * made anew. */
void cake_journal_writer_read_identity(const char *results, bool force, cake_buf *identity);

#endif
