/* SPDX-License-Identifier: Apache-2.0
 *
 * The recorder, shared by record.c, resume.c (opening the journal) and journal_writer.c (appending and
 * finishing) only. The journal is RESULTS.partial; a recorder that writes to a stream has none.
 */
#ifndef CAKE_RECORD_RECORDER_H
#define CAKE_RECORD_RECORDER_H

#include "formats/codec.h"
#include "record/fsync_thread.h"
#include "record/job.h"
#include "record/lock.h"
#include "record/record.h"
#include "record/stream.h"

struct cake_recorder {
    cake_record_options options;
    char *model, *command;              /* owned copies of the strings in options */
    char *results, *partial, *job_path; /* owned; RESULTS (also options.path), RESULTS.partial, RESULTS.job */
    bool txt, hdf5;
    const cake_codec *pack; /* NULL: not compressed */
    cake_buf line, plain;
    cake_record_cost cost; /* without the thread's part */
    cake_stream *stream;   /* NULL: there is a journal, and all below is its own */
    cake_lock *lock;
    int fd;               /* -1: RESULTS is finished; nothing is written */
    cake_journal journal; /* header, lines, marks of earlier runs, failures (also those of a stream) */
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

/* Resumes what an earlier run of the same job left, or starts a journal with this header (borrowed). Fails
 * with a message: files of another job, another run is writing, directory not writable. */
cake_err cake_journal_writer_open(cake_recorder *recorder, const cake_journal_header *header);
/* Fails: another process created RESULTS while this job's results are in .partial. */
cake_err cake_journal_writer_refuse_other(const cake_recorder *recorder);
/* line [len] includes the newline. On failure the file ends with the last complete group. */
cake_err cake_journal_writer_append(cake_recorder *recorder, cake_entry entry, const char *line, size_t len);
/* Creates RESULTS and RESULTS.job. */
cake_err cake_journal_writer_finish(cake_recorder *recorder);
/* Closes; removes a partial file without results. */
void cake_journal_writer_close(cake_recorder *recorder);

#endif
