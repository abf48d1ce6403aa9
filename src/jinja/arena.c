/* SPDX-License-Identifier: Apache-2.0
 *
 * In: requests for memory. Out: zeroed bytes that live until the region goes back to a mark before them, or
 * ends.
 * Called by everything that makes values; render.c sets the marks.
 * Invariant: a region is a stack: what was taken last lies in the block on top, and used counts what lies
 * below.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "jinja/internal.h"

#define BLOCK ((size_t)32 << 10)
#define SLACK ((size_t)4 << 10) /* behind a large piece, for small ones */
#define SPARE 16                /* blocks that wait for the next use */

typedef struct cake_jinja_arena_block {
    struct cake_jinja_arena_block *below;
    char *end;
    _Alignas(16) char bytes[];
} block;

void cake_jinja_arena_more(cake_jinja_arena *region, size_t bytes)
{
    size_t size = bytes > BLOCK - SLACK ? bytes + SLACK : BLOCK;
    block *fresh = region->spare;
    if (size == BLOCK && fresh) {
        region->spare = fresh->below;
        region->n_spare--;
    } else {
        fresh = (block *)cake_grow(NULL, 1, sizeof *fresh + size);
        fresh->end = fresh->bytes + size;
    }
    fresh->below = region->top;
    region->top = fresh;
    region->at = fresh->bytes;
    region->end = fresh->end;
}

static void drop(cake_jinja_arena *region)
{
    block *b = region->top;
    region->top = b->below;
    if (region->n_spare == SPARE || b->end != b->bytes + BLOCK) {
        free(b);
        return;
    }
    b->below = region->spare;
    region->spare = b;
    region->n_spare++;
}

void cake_jinja_arena_drop(cake_jinja_arena *region, const block *top)
{
    while (region->top != top)
        drop(region);
    region->end = top ? region->top->end : NULL;
}

void cake_jinja_arena_free(cake_jinja_arena *region)
{
    cake_jinja_arena_drop(region, NULL);
    for (block *b = region->spare, *below; b; b = below) {
        below = b->below;
        free(b);
    }
    *region = (cake_jinja_arena){0};
}
