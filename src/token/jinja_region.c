/* SPDX-License-Identifier: Apache-2.0
 *
 * In: requests for memory. Out: zeroed bytes that live until the region goes back to a mark before them, or ends.
 * Called by everything that makes values; jinja_render.c sets the marks.
 * Invariant: a region is a stack: what was taken last lies in the block on top, and used counts what lies below.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "token/jinja_parts.h"

#define BLOCK ((size_t)32 << 10)
#define SLACK ((size_t)4 << 10) /* behind a large piece, for small ones */

typedef struct cake_region_block {
    struct cake_region_block *below;
    char *end;
    _Alignas(16) char bytes[];
} block;

void cake_region_more(cake_region *region, size_t bytes)
{
    size_t size = bytes > BLOCK - SLACK ? bytes + SLACK : BLOCK;
    block *fresh = region->spare;
    if (size == BLOCK && fresh) {
        region->spare = NULL;
    } else {
        fresh = (block *)cake_grow(NULL, 1, sizeof *fresh + size);
        fresh->end = fresh->bytes + size;
    }
    fresh->below = region->top;
    region->top = fresh;
    region->at = fresh->bytes;
    region->end = fresh->end;
}

static void drop(cake_region *region)
{
    block *b = region->top;
    region->top = b->below;
    if (!region->spare && b->end == b->bytes + BLOCK)
        region->spare = b;
    else
        free(b);
}

void cake_region_back(cake_region *region, cake_region_mark mark)
{
    while (region->top != mark.top)
        drop(region);
    region->at = mark.at;
    region->end = region->top ? region->top->end : mark.at;
    region->used = mark.used;
}

void cake_region_free(cake_region *region)
{
    while (region->top)
        drop(region);
    free(region->spare);
    *region = (cake_region){0};
}
