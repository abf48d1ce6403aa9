/* SPDX-License-Identifier: Apache-2.0
 *
 * RESULTS.h5: the results as columns (layout: docs/formats.md), plus what is needed to restore each JSONL
 * line byte for byte. The journal keeps lines only; prompts and token ids travel through it as an extra last
 * key.
 */
#ifndef CAKE_RECORD_HDF5_H
#define CAKE_RECORD_HDF5_H

#include "record/journal_format.h"
#include "record/record.h"

/* Adds the extra last key (prompt and token ids) to a line without newline. */
void cake_hdf5_add_rest(const cake_record *record, cake_buf *line);

/* Writes the lines of fd to the existing file at path. Returns 0 or errno. */
int cake_hdf5_write(int fd, const cake_line_index *lines, const cake_journal_header *header,
                    const char *command, const char *path);

/* Placeholder bytes in the column `lines`; JSON lines never contain them. Each stands for data of the line's
 * rows: the next text (as JSON), the next list of token ids, the next logprobs (between the brackets), the
 * prompt ids; the next embedding, as an array or as a string of base64. */
enum {
    CAKE_HDF5_TEXT = 1,
    CAKE_HDF5_IDS,
    CAKE_HDF5_SCORES,
    CAKE_HDF5_PROMPT,
    CAKE_HDF5_EMBEDDING,
    CAKE_HDF5_BASE64
};

#endif
