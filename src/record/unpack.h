/* SPDX-License-Identifier: Apache-2.0
 *
 * A finished RESULTS that is packed or HDF5 becomes lines again: those that RESULTS.jsonl would have, to the
 * byte. What a RESULTS.h5 has beside its lines (prompts, token ids that nobody asked for) is not in them.
 */
#ifndef CAKE_RECORD_UNPACK_H
#define CAKE_RECORD_UNPACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* By the ending of its name: whether its lines are not what lies in the file. */
bool cake_unpack_is_needed(const char *results);
/* Where lines go. */
typedef struct cake_unpack_to {
    int fd;           /* a file without a name; whoever opens it closes it */
    int64_t at;       /* the byte from which on they are written */
    char where[4096]; /* as messages have it */
} cake_unpack_to;

/* A file on the disk that has room for what is made of its lines: in the directory of `beside`. NULL: for
 * temporary files. */
cake_err cake_unpack_open(const char *beside, cake_unpack_to *to);
/* Writes the lines, so many; *len becomes their bytes. Memory: the longest line, and a few blocks.
 * CAKE_ERR_FATAL, said: the file is no RESULTS, is damaged, has other lines, or they cannot be written. */
cake_err cake_unpack(const char *results, int64_t lines, const cake_unpack_to *to, int64_t *len);

#endif
