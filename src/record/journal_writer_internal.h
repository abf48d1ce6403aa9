/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of RESULTS.partial share: resume.c (how a run finds it), journal_writer.c (how it grows
 * and becomes RESULTS). Nobody else includes this.
 */
#ifndef CAKE_RECORD_JOURNAL_WRITER_INTERNAL_H
#define CAKE_RECORD_JOURNAL_WRITER_INTERNAL_H

#include "record/fsync_thread.h"
#include "record/job.h"
#include "record/journal_writer.h"
#include "record/lock.h"

struct cake_journal_writer {
    char *results, *path, *job_path;  /* owned; RESULTS, with .partial, with .job behind it */
    bool retry, lossy, copies, never; /* never: --resume never, under which nothing is gone on from */
    cake_lock *lock;
    int fd;                     /* -1: RESULTS is finished, and nothing is written */
    cake_journal journal;       /* head, lines, marks of earlier runs, failures */
    int64_t first, begun, size; /* bytes: of the first line; when this run opened it; now, of whole groups */
    int64_t resumed;
    cake_input_checkpoint read;
    cake_reached reached; /* but for the seconds */
    double began;         /* cake_clock_now of reached.run */
    cake_entry *entries;  /* [GROUP] those of the group that grows: n_entry, begun at `since` */
    size_t n_entry;
    cake_buf group;
    cake_buf parts; /* the line of answers that were begun, as far as it is told */
    double since;
    double look;            /* when the file itself is looked at again */
    bool opened;            /* it is this run's */
    bool imports;           /* it holds nothing yet but what RESULTS has */
    cake_answered imported; /* of RESULTS, as long as it is to be added */
    bool broken;            /* a write failed, and that was said */
    bool undone, gone;
    cake_buf resume_message; /* what it goes on from, in words */
    bool damaged;            /* some of that was damaged: it is said as a warning */
    cake_fsync_thread *sync;
};

/* RESULTS is somebody else's, while what this job has done is in .partial. */
cake_err cake_journal_writer_refuse_other(const cake_journal_writer *writer);

#endif
