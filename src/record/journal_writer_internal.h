/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by resume.c (opening) and journal_writer.c (appending and finishing) only.
 */
#ifndef CAKE_RECORD_JOURNAL_WRITER_INTERNAL_H
#define CAKE_RECORD_JOURNAL_WRITER_INTERNAL_H

#include "record/fsync_thread.h"
#include "record/job.h"
#include "record/journal_writer.h"
#include "record/lock.h"

struct cake_journal_writer {
    char *results, *path, *job_path;  /* owned; RESULTS, RESULTS.partial, RESULTS.job */
    bool retry, lossy, copies, never; /* never: --resume never */
    cake_lock *lock;
    int fd;               /* -1: RESULTS is finished; nothing is written */
    cake_journal journal; /* head, lines, marks of earlier runs, failures */
    int64_t first, begun,
        size; /* size of the first line; size when this run opened it; size of complete groups */
    int64_t resumed;
    cake_input_checkpoint read;
    cake_reached reached; /* without its seconds */
    double began;         /* cake_clock_now() at reached.run */
    cake_entry *entries;  /* [GROUP] entries of the open group: n_entry of them, begun at `since` */
    size_t n_entry;
    cake_buf group;
    cake_buf parts; /* pending line of unfinished answers */
    double since;
    double look;            /* time of the next check of the file */
    bool opened;            /* this run owns it */
    bool imports;           /* it holds only a copy of RESULTS so far */
    cake_answered imported; /* of RESULTS, while it is being copied */
    bool broken;            /* a write failed and was reported */
    bool undone, gone;
    cake_buf resume_message; /* what is resumed, for the log */
    bool damaged;            /* part of it was damaged: log a warning */
    cake_fsync_thread *sync;
};

/* Fails: another process created RESULTS while this job's results are in .partial. */
cake_err cake_journal_writer_refuse_other(const cake_journal_writer *writer);

#endif
