/* SPDX-License-Identifier: Apache-2.0
 *
 * Models by their sizes alone: what benchmarks run with made-up weights where no model is at hand.
 */
#ifndef CAKE_BENCH_SHAPES_H
#define CAKE_BENCH_SHAPES_H

/* The text of a config.json, or NULL if there is no such shape; the error message lists the known ones. */
const char *shape_config(const char *name);

#endif
