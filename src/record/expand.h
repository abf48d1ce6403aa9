/* SPDX-License-Identifier: Apache-2.0
 *
 * A finished RESULTS that is packed or HDF5 becomes lines again: those that RESULTS.jsonl would have, to the byte. What a
 * RESULTS.h5 has beside its lines (prompts, token ids that nobody asked for) is not in them.
 */
#ifndef CAKE_RECORD_EXPAND_H
#define CAKE_RECORD_EXPAND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* By the ending of its name: whether its lines are not what lies in the file. */
bool cake_expand_is_needed(const char *results);
/* Writes the lines to fd, a file, from byte `at` on; *len becomes their bytes. Memory: the longest line, and a few blocks.
 * CAKE_ERR_FATAL, said: the file is no RESULTS, is damaged, or its lines cannot be written. */
cake_err cake_expand(const char *results, int fd, int64_t at, int64_t *len);

#endif
