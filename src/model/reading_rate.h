/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast weights are read and packed, measured on a sample of the model's matrices.
 */
#ifndef CAKE_MODEL_READING_RATE_H
#define CAKE_MODEL_READING_RATE_H

#include "model/model.h"

/* Bytes of files a second. 0: unknown, or nothing is read from there. */
typedef struct cake_reading_rate {
    double disk;   /* from files that are not in the page cache */
    double cached; /* from those that are: what the threads copy, convert and pack */
} cake_reading_rate;

/* Takes some hundredths of a second, or as long as the disk needs for 48 MB. Errors give zeros: they are
 * reported when weights are loaded. */
cake_reading_rate cake_reading_rate_measure(const cake_model *model, const cake_kernels *kernels,
                                            int n_thread);

#endif
