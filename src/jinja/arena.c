/* SPDX-License-Identifier: Apache-2.0
 *
 * In: allocations. Out: memory that lives until the arena is reset to an earlier mark or freed.
 * Invariant: an arena is a stack of blocks: the latest allocation lies in the top block, and `used` counts
 * all live bytes.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "jinja/internal.h"

#define BLOCK ((size_t)32 << 10)
#define SLACK ((size_t)4 << 10) /* after a large allocation, for small ones */
#define SPARE 16                /* free blocks kept for reuse */

typedef struct cake_jinja_arena_block {
    struct cake_jinja_arena_block *below;
    char *end;
    _Alignas(16) char bytes[];
} block;

void cake_jinja_arena_more(cake_jinja_arena *arena, size_t bytes)
{
    size_t size = bytes > BLOCK - SLACK ? bytes + SLACK : BLOCK;
    block *fresh = arena->spare;
    if (size == BLOCK && fresh) {
        arena->spare = fresh->below;
        arena->n_spare--;
    } else {
        fresh = (block *)cake_grow(NULL, 1, sizeof *fresh + size);
        fresh->end = fresh->bytes + size;
    }
    fresh->below = arena->top;
    arena->top = fresh;
    arena->at = fresh->bytes;
    arena->end = fresh->end;
}

static void drop(cake_jinja_arena *arena)
{
    block *b = arena->top;
    arena->top = b->below;
    if (arena->n_spare == SPARE || b->end != b->bytes + BLOCK) {
        free(b);
        return;
    }
    b->below = arena->spare;
    arena->spare = b;
    arena->n_spare++;
}

void cake_jinja_arena_drop(cake_jinja_arena *arena, const block *top)
{
    while (arena->top != top)
        drop(arena);
    arena->end = top ? arena->top->end : NULL;
}

void cake_jinja_arena_free(cake_jinja_arena *arena)
{
    cake_jinja_arena_drop(arena, NULL);
    for (block *b = arena->spare, *below; b; b = below) {
        below = b->below;
        free(b);
    }
    *arena = (cake_jinja_arena){0};
}
