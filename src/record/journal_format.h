/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of RESULTS.partial. The first line identifies the job. Groups follow: finished results, one per
 * line, then a line with their input positions and a checksum. Between groups there may be lines with tokens
 * of unfinished answers. Format: docs/formats.md. Opens and changes no file.
 */
#ifndef CAKE_RECORD_JOURNAL_FORMAT_H
#define CAKE_RECORD_JOURNAL_FORMAT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "record/inflight.h"
#include "record/line_index.h"
#include "types/input_checkpoint.h"

#define CAKE_JOURNAL_MAX                                                                                     \
    ((int64_t)1 << 32) /* max number of requests; a larger number is corrupt, not a larger file */

/* Identifies the job. */
typedef struct cake_journal_header {
    char *identity;  /* JSON object of plain values that must be equal for results to be equal */
    char *model;     /* model name in results */
    int64_t created; /* seconds since 1970 */
    uint64_t job;    /* seed of ids */
    bool replaces;   /* a finished RESULTS may be overwritten */
} cake_journal_header;

void cake_journal_header_copy(cake_journal_header *into,
                              const cake_journal_header *from); /* old content of *into is not freed */
void cake_journal_header_free(cake_journal_header *header);     /* zeros are fine */
/* Appends the keys and values of a header, without the braces of the object. */
void cake_journal_header_add(const cake_journal_header *header, cake_buf *out);
struct cake_json;
bool cake_journal_header_parse(const struct cake_json *object, cake_journal_header *header); /* owned */
/* Parses a string of exactly `digits` hex digits. False: it is not one. */
bool cake_journal_hex(const struct cake_json *node, size_t digits, uint64_t *out);
/* Appends the differences of two identities, as "isa was avx2 and is avx512"; nothing if they are equal. */
void cake_journal_differs(const char *was, const char *is, cake_buf *out);

/* Appends an array of at most `most` marks, thinned evenly; the last one is always included. */
void cake_journal_add_checkpoints(const cake_input_checkpoint *marks, size_t n, size_t most, cake_buf *out);
/* Owned. False: not an array of marks in ascending order. */
bool cake_journal_parse_checkpoints(const struct cake_json *array, cake_input_checkpoint **marks, size_t *n);

/* One result in a group. */
typedef struct cake_entry {
    int64_t order;      /* index among the requests of the input */
    uint64_t sum;       /* checksum of the input line (cake_request) */
    bool failed, known; /* known: sum is set */
} cake_entry;

/* Checksum over the input lines of all requests with a successful answer. It tells whether these lines are
 * unchanged, whatever happened to the others. */
typedef struct cake_answered {
    uint64_t sum;
    bool unknown; /* some lines' checksums are unknown */
} cake_answered;

void cake_answered_add(cake_answered *answered, const cake_entry *entry);

/* Progress when a group was written, for `cake-mpi status`. */
typedef struct cake_reached {
    int64_t run;    /* start of this run, seconds since 1970; 0: absent */
    double seconds; /* since the start */
    double share;   /* answered fraction of the input; negative: unknown */
    double left;    /* estimated seconds to the end; negative: unknown */
} cake_reached;

/* Appends the first line. */
void cake_journal_begin(const cake_journal_header *header, cake_buf *out);
/* Appends the last line of a group [n entries]; out must hold exactly the group's lines. */
void cake_journal_close(const cake_entry *entries, size_t n, const cake_input_checkpoint *read,
                        const cake_reached *reached, cake_buf *out);

/* Begin and end of a line of unfinished answers. In between come parts from cake_inflight_add, separated by
 * commas. */
void cake_journal_open_running(cake_buf *out);
void cake_journal_close_running(const cake_input_checkpoint *read,
                                cake_buf *out); /* out must hold only this line */

/* The content of a journal. */
typedef struct cake_journal {
    cake_journal_header header;
    cake_line_index lines;        /* of complete groups */
    cake_inflights inflights;     /* unfinished answers */
    cake_input_checkpoint *marks; /* [n_mark] in ascending order */
    size_t n_mark;
    cake_answered answered;
    int64_t failed;           /* number of error records */
    int64_t end;              /* offset after the last complete group */
    int64_t torn;             /* bytes after `end`: an incomplete group */
    int64_t lost;             /* bytes of damaged groups before `end` */
    cake_reached first, last; /* in the first and last group of the latest run */
    int64_t first_n;          /* results before that first group */
} cake_journal;

/* path is for messages. CAKE_END: not even the first line is complete; nothing is lost. */
cake_err cake_journal_read(int fd, const char *path, cake_journal *out);
/* Reads only the header, without messages. */
bool cake_journal_peek(int fd, cake_journal_header *header);
void cake_journal_free(cake_journal *journal); /* zeros are fine */

#endif
