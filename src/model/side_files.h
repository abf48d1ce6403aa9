/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of a model, by their names: which are its own, and what those hold that are not its weights:
 * config, tokenizer, templates.
 */
#ifndef CAKE_MODEL_SIDE_FILES_H
#define CAKE_MODEL_SIDE_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* Whether a file of this name in the model's directory is the model's own: others may be results of old. */
bool cake_side_files_is_own(const char *name);

/* The checksum of a file's name and content. */
uint32_t cake_side_files_sum(const char *name, const cake_buf *text);

/* Reads each that is there, but for weights, and gives it to take, which owns text. Stops at the first
 * error. */
cake_err cake_side_files_read(const char *dir, const char *topic,
                              cake_err (*take)(void *self, const char *name, cake_buf *text), void *self);

#endif
