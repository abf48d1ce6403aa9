/* SPDX-License-Identifier: Apache-2.0
 *
 * Large memory that is planned before it is taken: one anonymous mapping, handed out in 64-byte aligned
 * pieces, freed as a whole. Pages are committed when first touched, so their first toucher decides their NUMA
 * domain.
 */
#ifndef CAKE_BASE_ARENA_H
#define CAKE_BASE_ARENA_H

#include <stddef.h>

#include "base/err.h"

typedef struct cake_arena {
    char *base;
    size_t used, size;
} cake_arena;

#define CAKE_ALIGN 64

/* bytes rounded up to what cake_arena_take will use of the arena. */
size_t cake_arena_round(size_t bytes);
/* what says in a message whose memory it is ("weights", "KV cache"). */
cake_err cake_arena_open(cake_arena *arena, const char *what, size_t size);
void *cake_arena_take(cake_arena *arena, size_t bytes); /* zeroed; asserts that the plan was right */
/* Keeps all of it in physical memory, whether it was touched or not. What says whose memory it is. */
cake_err cake_arena_lock(cake_arena *arena, const char *what);
void cake_arena_close(cake_arena *arena); /* zeros are fine */
/* Of all arenas of this process that are open. */
size_t cake_arena_bytes(void);

#endif
