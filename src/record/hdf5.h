/* SPDX-License-Identifier: Apache-2.0
 *
 * RESULTS.h5: columns of what lines of results say (docs/formats.md has the layout), and what else stands in
 * them, so that each line can be had back to the byte. The journal keeps lines only, so what a file has
 * beside them travels as their last key.
 */
#ifndef CAKE_RECORD_HDF5_H
#define CAKE_RECORD_HDF5_H

#include "record/journal_format.h"
#include "record/record.h"

/* line, without newline, gets prompt and token ids as a last key. */
void cake_hdf5_add_rest(const cake_record *record, cake_buf *line);

/* Writes the lines of fd that lines tell to the file at path, which must be there. 0, or errno. */
int cake_hdf5_write(int fd, const cake_line_index *lines, const cake_journal_head *head, const char *command,
                    const char *path);

/* Bytes that no line of JSON has, which stand in `lines` for what the line's rows hold: as JSON its first,
 * second, ... text; its lists of token ids; what is between the brackets of its log probabilities; the ids of
 * its prompt. */
enum { CAKE_HDF5_TEXT = 1, CAKE_HDF5_IDS, CAKE_HDF5_SCORES, CAKE_HDF5_PROMPT };

#endif
