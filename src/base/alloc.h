/* SPDX-License-Identifier: Apache-2.0
 *
 * Small memory (structs, strings, vectors). Running out of it ends the run with a message: finished results
 * are on disk, and no caller could do better. Weights, caches and buffers of the hot loop come from
 * base/arena.h, which plans before it allocates and returns cake_err.
 */
#ifndef CAKE_BASE_ALLOC_H
#define CAKE_BASE_ALLOC_H

#include <stddef.h>

void *cake_alloc(size_t count, size_t size); /* zeroed; count * size is checked; never NULL; free() it */
void *cake_grow(void *memory, size_t count, size_t size); /* realloc; new bytes are not zeroed; never NULL */
char *cake_copy(const char *text, size_t len);            /* NUL-terminated copy of len bytes, owned */

/* Makes room for one more element in an array of n, with memory for cap. */
#define CAKE_RESERVE(array, n, cap)                                                                          \
    do                                                                                                       \
        if ((n) == (cap)) {                                                                                  \
            (cap) = (cap) ? 2 * (cap) : 16;                                                                  \
            (array) = cake_grow(array, (size_t)(cap), sizeof *(array));                                      \
        }                                                                                                    \
    while (0)

/* Returns freed memory to the system, after something large was opened. */
void cake_alloc_trim(void);

#endif
