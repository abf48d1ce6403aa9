/* SPDX-License-Identifier: Apache-2.0
 *
 * In: sizes. Out: memory, or the end of the run with a message.
 * Invariant: never NULL; the C library is never asked for 0 bytes, for which its answers differ.
 */
#include "base/alloc.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/die.h"

void *cake_alloc(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size ? size : 1);
    if (!memory)
        cake_die("out of memory: %zu x %zu bytes", count, size);
    return memory;
}

void *cake_grow(void *memory, size_t count, size_t size)
{
    void *grown = reallocarray(memory, count ? count : 1, size ? size : 1);
    if (!grown)
        cake_die("out of memory: %zu x %zu bytes", count, size);
    return grown;
}

char *cake_copy(const char *text, size_t len)
{
    char *copy = cake_alloc(len + 1, 1);
    if (len)
        memcpy(copy, text, len);
    return copy;
}

void cake_alloc_trim(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}
