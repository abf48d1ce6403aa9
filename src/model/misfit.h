/* SPDX-License-Identifier: Apache-2.0
 *
 * Folders that are no model as this program reads it: adapters, weights in other formats, a level too high.
 * What is there is named, with what to do about it.
 */
#ifndef CAKE_MODEL_MISFIT_H
#define CAKE_MODEL_MISFIT_H

#include "base/err.h"

/* dir lacks the file `missing`: says so, and what is there in its place; always fails. */
cake_err cake_misfit_fail(const char *dir, const char *missing);
/* Says what a folder that is a model has beside it and is not applied. */
void cake_misfit_warn(const char *dir);

#endif
