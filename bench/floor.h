/* SPDX-License-Identifier: Apache-2.0
 *
 * What the machine can do at most: the measures that kernels are held against.
 */
#ifndef CAKE_BENCH_FLOOR_H
#define CAKE_BENCH_FLOOR_H

/* Both run on `threads` threads for about as long as it takes to be sure. isa is a kernel table's name: the widest
 * vectors that it may use. */
double floor_flops(const char *isa, int threads); /* float32 operations a second; a multiply-add is two */
double floor_read(const char *isa, int threads);  /* bytes a second, from memory */

#endif
