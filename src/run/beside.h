/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of a model that are not its weights: config, tokenizer, templates.
 */
#ifndef CAKE_RUN_BESIDE_H
#define CAKE_RUN_BESIDE_H

#include "base/buf.h"
#include "base/err.h"

/* Reads each of them that is there and gives it to take, which owns text. Stops at the first error. */
cake_err cake_beside_read(const char *dir, const char *topic,
                          cake_err (*take)(void *self, const char *name, cake_buf *text), void *self);

#endif
