/* SPDX-License-Identifier: Apache-2.0
 *
 * Directories that are not a model in a supported form: adapters, other formats, one level too high. Messages
 * name what is there and what to do.
 */
#ifndef CAKE_CONFIG_NOT_A_MODEL_H
#define CAKE_CONFIG_NOT_A_MODEL_H

#include "base/err.h"

/* Reports that dir lacks the file `missing`, and what it has instead. Always fails. */
cake_err cake_not_a_model_fail(const char *dir, const char *missing);
/* Warns about files in a valid model directory that are not applied. */
void cake_not_a_model_warn(const char *dir);

#endif
