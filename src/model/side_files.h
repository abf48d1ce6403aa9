/* SPDX-License-Identifier: Apache-2.0
 *
 * A model's files by name: which belong to it, and the content of those other than weights (config,
 * tokenizer, templates).
 */
#ifndef CAKE_MODEL_SIDE_FILES_H
#define CAKE_MODEL_SIDE_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* Whether a file of this name belongs to the model; others in its directory may be old results. */
bool cake_side_files_is_own(const char *name);

/* Checksum of a file's name and content. */
uint32_t cake_side_files_sum(const char *name, const cake_buf *text);

/* Reads each existing file except weights and passes it to take, which owns text. Stops at the first
 * error. */
cake_err cake_side_files_read(const char *dir, const char *topic,
                              cake_err (*take)(void *self, const char *name, cake_buf *text), void *self);

#endif
