/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of RESULTS.partial: a line that says what job this is, then groups: finished results, a line each,
 * and a line with their places in the input and a checksum; between groups lines with the tokens of answers
 * that were begun. docs/formats.md has the format. No file is opened or changed here.
 */
#ifndef CAKE_RECORD_JOURNAL_FORMAT_H
#define CAKE_RECORD_JOURNAL_FORMAT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "record/inflight.h"
#include "record/line_index.h"
#include "types/input_checkpoint.h"

#define CAKE_JOURNAL_MOST ((int64_t)1 << 32) /* requests; more are a broken number, not a larger file */

/* What job this is. */
typedef struct cake_journal_head {
    char *identity;  /* JSON: an object of plain values. What has to be the same for results to be */
    char *model;     /* what results call it */
    int64_t created; /* seconds since 1970 */
    uint64_t job;    /* ids derive from it */
    bool replaces;   /* a finished RESULTS that is there may be overwritten */
} cake_journal_head;

void cake_journal_head_copy(cake_journal_head *into, const cake_journal_head *from); /* into is not freed */
void cake_journal_head_free(cake_journal_head *head);                                /* zeros are fine */
/* The keys of a head and their values, to stand within an object. */
void cake_journal_head_add(const cake_journal_head *head, cake_buf *out);
struct cake_json;
bool cake_journal_head_parse(const struct cake_json *object, cake_journal_head *head); /* owned */
/* A text of so many digits of base 16; false: it is none. */
bool cake_journal_hex(const struct cake_json *node, size_t digits, uint64_t *out);
/* What differs, as "isa was avx2 and is avx512"; nothing if they are of one job. Texts of identities. */
void cake_journal_differs(const char *was, const char *is, cake_buf *out);

/* The marks, evenly thinned to so many at most, the last one among them: an array. */
void cake_journal_add_checkpoints(const cake_input_checkpoint *marks, size_t n, size_t most, cake_buf *out);
/* Owned; false: they are none, or not in ascending order. */
bool cake_journal_parse_checkpoints(const struct cake_json *array, cake_input_checkpoint **marks, size_t *n);

/* One result of a group. */
typedef struct cake_entry {
    int64_t order;      /* among the requests of the input */
    uint64_t sum;       /* of its line (cake_request) */
    bool failed, known; /* known: sum is */
} cake_entry;

/* The sum of the lines of all requests that have an answer, which did not fail: whether these lines are what
 * they were, whatever became of the others. */
typedef struct cake_answered {
    uint64_t sum;
    bool unknown; /* of some it is not known */
} cake_answered;

void cake_answered_add(cake_answered *answered, const cake_entry *entry);

/* How far the job was when a group was written, for those who look at it from outside. */
typedef struct cake_reached {
    int64_t run;    /* when this run began, seconds since 1970; 0: not said */
    double seconds; /* since then */
    double share;   /* of the input that is answered; negative: not known */
    double left;    /* seconds to its end; negative: not known */
} cake_reached;

/* The first line. */
void cake_journal_begin(const cake_journal_head *head, cake_buf *out);
/* Behind the lines of a group [n entries], which are all that is in out. */
void cake_journal_close(const cake_entry *entries, size_t n, const cake_input_checkpoint *read,
                        const cake_reached *reached, cake_buf *out);

/* Around the parts of answers that were begun, in a line of their own: each added with cake_inflight_add,
 * commas between them. */
void cake_journal_open_running(cake_buf *out);
void cake_journal_close_running(const cake_input_checkpoint *read,
                                cake_buf *out); /* out holds nothing but the line */

/* What a journal holds. */
typedef struct cake_journal {
    cake_journal_head head;
    cake_line_index lines;        /* of whole groups */
    cake_inflights inflights;     /* begun, and not finished */
    cake_input_checkpoint *marks; /* [n_mark] in ascending order */
    size_t n_mark;
    cake_answered answered;
    int64_t failed;           /* places of error records */
    int64_t end;              /* offset behind the last whole group */
    int64_t torn;             /* bytes behind it, of a group that was being written */
    int64_t lost;             /* bytes of damaged groups before that */
    cake_reached first, last; /* of the first and last group of the latest run */
    int64_t first_n;          /* places that there were behind its first group */
} cake_journal;

/* Reads the file, path in messages. CAKE_END: it has not even its first line, nothing is lost. */
cake_err cake_journal_read(int fd, const char *path, cake_journal *out);
/* Only the head; nothing is said. */
bool cake_journal_peek(int fd, cake_journal_head *head);
void cake_journal_free(cake_journal *journal); /* zeros are fine */

#endif
