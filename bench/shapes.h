/* SPDX-License-Identifier: Apache-2.0
 *
 * Models by their sizes alone: what benchmarks run with made-up weights where no model is at hand.
 */
#ifndef CAKE_BENCH_SHAPES_H
#define CAKE_BENCH_SHAPES_H

/* The text of a config.json, or NULL: no such shape, which is said with those there are. */
const char *shape_config(const char *name);

#endif
