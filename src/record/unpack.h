/* SPDX-License-Identifier: Apache-2.0
 *
 * Expands a finished compressed or HDF5 RESULTS into the lines that RESULTS.jsonl would have, byte for byte.
 * Extra data of a RESULTS.h5 (prompts, unrequested token ids) is left out.
 */
#ifndef CAKE_RECORD_UNPACK_H
#define CAKE_RECORD_UNPACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Whether the file, by its extension, does not hold its lines as they are. */
bool cake_unpack_is_needed(const char *results);
/* Destination of the lines. */
typedef struct cake_unpack_to {
    int fd;           /* unlinked file; closed by the caller */
    int64_t at;       /* offset of the first byte to write */
    char where[4096]; /* name for messages */
} cake_unpack_to;

/* Creates the unlinked file in the directory of `sibling`, or in that for temporary files if NULL. */
cake_err cake_unpack_open(const char *sibling, cake_unpack_to *to);
/* Writes exactly `lines` lines and sets *len to their bytes. Memory: the longest line and a few blocks.
 * CAKE_ERR_FATAL (reported): not a RESULTS file, damaged, other lines, or not writable. */
cake_err cake_unpack(const char *results, int64_t lines, const cake_unpack_to *to, int64_t *len);

#endif
