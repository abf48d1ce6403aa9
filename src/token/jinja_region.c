/* SPDX-License-Identifier: Apache-2.0
 *
 * In: requests for memory. Out: zeroed bytes that live until the region ends.
 * Invariant: used is what was asked for; who must stay within a limit looks at it first.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "token/jinja_parts.h"

#define BLOCK ((size_t)32 << 10)
#define ALIGN ((size_t)16)

typedef struct cake_region_block {
    struct cake_region_block *next;
    size_t used, size;
    _Alignas(16) char bytes[];
} block;

void *cake_region_take(cake_region *region, size_t bytes)
{
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    block *b = region->blocks;
    if (!b || b->size - b->used < bytes) {
        size_t size = bytes > BLOCK / 4 ? bytes : BLOCK;
        block *fresh = cake_alloc(1, sizeof *fresh + size);
        fresh->size = size;
        if (b &&
            size !=
                BLOCK) { /* a large piece of its own goes behind, what is left of the first stays in use */
            fresh->next = b->next;
            b->next = fresh;
        } else {
            fresh->next = b;
            region->blocks = fresh;
        }
        b = fresh;
    }
    void *memory = b->bytes + b->used;
    b->used += bytes;
    region->used += bytes;
    return memory;
}

void cake_region_free(cake_region *region)
{
    while (region->blocks) {
        block *b = region->blocks;
        region->blocks = b->next;
        free(b);
    }
    region->used = 0;
}
