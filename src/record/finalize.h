/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies result lines from a journal into a file of their own, in input order.
 */
#ifndef CAKE_RECORD_FINALIZE_H
#define CAKE_RECORD_FINALIZE_H

#include <stdbool.h>

#include "base/buf.h"
#include "record/line_index.h"

/* Appends the converted form of a line [len, no newline] to out. False: the line is not a result. */
typedef bool cake_convert(const char *line, size_t len, cake_buf *out);

typedef struct cake_file_digest {
    int64_t bytes;
    uint32_t sum; /* CRC-32C of the whole file */
} cake_file_digest;

/* The output format. */
typedef struct cake_finalize_form {
    cake_convert *convert;         /* NULL: lines are copied unchanged */
    bool hdf5;                     /* write columns instead of lines */
    const struct cake_codec *pack; /* compression; NULL: none */
    const char *command;           /* recorded in HDF5 files; NULL: unknown */
} cake_finalize_form;

struct cake_journal_header;
/* Writes the lines of fd in this format to a new file tmp with fd's permissions (an old tmp is replaced) and
 * syncs it. Returns 0 and sets *out, or returns errno and leaves no file; EBADMSG: a line is not a result. */
int cake_finalize_write(int fd, const cake_line_index *lines, const struct cake_journal_header *header,
                        const cake_finalize_form *form, const char *tmp, cake_file_digest *out);
/* Syncs the directory entry of path, where the file system supports that. */
void cake_finalize_fsync_dir(const char *path);

#endif
