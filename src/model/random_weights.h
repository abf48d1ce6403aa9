/* SPDX-License-Identifier: Apache-2.0
 *
 * Seeded weights instead of a file's, for benchmarks and plans. An element depends only on seed, tensor name
 * and index, so any split over ranks gives the same model.
 */
#ifndef CAKE_MODEL_RANDOM_WEIGHTS_H
#define CAKE_MODEL_RANDOM_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/tensor.h"

/* into [n]: elements first, first + 1, ... of the tensor; ones for a norm, else uniform with standard
 * deviation 0.02. */
void cake_random_weights_fill(uint64_t seed, const char *name, bool norm, cake_dtype dtype, int64_t first,
                              int64_t n, void *into);

#endif
