/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines that lie somewhere in a file become a file of their own, in the order of the input.
 */
#ifndef CAKE_RECORD_FINALIZE_H
#define CAKE_RECORD_FINALIZE_H

#include <stdbool.h>

#include "base/buf.h"
#include "record/line_index.h"

/* Appends to out what stands for a line [len] without its newline; false: it is no result. */
typedef bool cake_convert(const char *line, size_t len, cake_buf *out);

typedef struct cake_file_digest {
    int64_t bytes;
    uint32_t sum; /* CRC-32C of all */
} cake_file_digest;

/* What becomes of the lines. */
typedef struct cake_finalize_form {
    cake_convert *convert;         /* NULL: they stay what they are */
    bool hdf5;                     /* columns */
    const struct cake_codec *pack; /* NULL: the file is not packed */
    const char *command;           /* for a file that says where it comes from; NULL: unknown */
} cake_finalize_form;

struct cake_journal_head;
/* Writes the lines of fd that lines tell in that form to a new file tmp of fd's rights, in place of one that
 * is there, and brings it onto the disk. 0 and *out, or errno: nothing is left; EBADMSG: a line is no
 * result. */
int cake_finalize_write(int fd, const cake_line_index *lines, const struct cake_journal_head *head,
                        const cake_finalize_form *form, const char *tmp, cake_file_digest *out);
/* The directory's entry of path is on disk too, where the file system lets itself be asked. */
void cake_finalize_fsync_dir(const char *path);

#endif
