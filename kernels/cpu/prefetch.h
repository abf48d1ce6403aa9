/* SPDX-License-Identifier: Apache-2.0
 *
 * Hints that the line of memory with a byte is read soon: it comes into the first cache, or into the second
 * one only. Any address will do.
 */
#ifndef CAKE_KERNELS_CPU_PREFETCH_H
#define CAKE_KERNELS_CPU_PREFETCH_H

#define prefetch_near(p) __builtin_prefetch(p, 0, 3)
#define prefetch_far(p)  __builtin_prefetch(p, 0, 2)

#endif
