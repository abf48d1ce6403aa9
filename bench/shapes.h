/* SPDX-License-Identifier: Apache-2.0
 *
 * Models by their sizes alone: what benchmarks run with made-up weights where no model is at hand.
 */
#ifndef CAKE_BENCH_SHAPES_H
#define CAKE_BENCH_SHAPES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* Appends the text of a config.json, with the first `layers` layers only (0: all). False: there is no such
 * shape, and the error message lists the known ones, or it has fewer layers. */
bool shape_config(const char *name, int64_t layers, cake_buf *out);
void shape_list(cake_buf *out); /* Appends "qwen3-0.6b, llama-3.1-8b". */

#endif
