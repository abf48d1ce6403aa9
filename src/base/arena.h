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

/* The bytes of the arena that cake_arena_take(bytes) uses. */
size_t cake_arena_round(size_t bytes);
/* what: the owner of the memory for messages ("weights", "KV cache"). */
cake_err cake_arena_open(cake_arena *arena, const char *what, size_t size);
void *cake_arena_take(cake_arena *arena, size_t bytes); /* zeroed; asserts that the plan was right */
/* Locks all of it into physical memory, whether it was touched or not. what: as in open. */
cake_err cake_arena_lock(cake_arena *arena, const char *what);
void cake_arena_close(cake_arena *arena); /* a zeroed arena is fine */
/* Sum over all open arenas of this process. */
size_t cake_arena_bytes(void);

#endif
