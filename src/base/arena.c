/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a planned size. Out: pieces of one mapping, for weights, caches and buffers of the hot loop.
 * Invariant: every piece begins at a multiple of CAKE_ALIGN; taking more than was planned is a bug, not an
 * error.
 */
#include "base/arena.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static atomic_size_t open_bytes;

size_t cake_arena_bytes(void)
{
    return atomic_load(&open_bytes);
}

size_t cake_arena_round(size_t bytes)
{
    return (bytes + CAKE_ALIGN - 1) / CAKE_ALIGN * CAKE_ALIGN;
}

cake_err cake_arena_open(cake_arena *arena, const char *what, size_t size)
{
    void *base = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return cake_fail("memory", "%s: %zu bytes cannot be allocated: %s", what, size, strerror(errno));
    /* A hint: failure does not matter. Beside pages of 64 KB a huge one has 512 MB, which would all be in the
     * NUMA domain of the first thread that touches it. */
    if (sysconf(_SC_PAGESIZE) <= 16 << 10)
        madvise(base, size, MADV_HUGEPAGE);
    *arena = (cake_arena){.base = base, .size = size};
    atomic_fetch_add(&open_bytes, size);
    return CAKE_OK;
}

void *cake_arena_take(cake_arena *arena, size_t bytes)
{
    size_t rounded = cake_arena_round(bytes);
    CAKE_ASSERT(rounded >= bytes && rounded <= arena->size - arena->used);
    void *piece = arena->base + arena->used;
    arena->used += rounded;
    return piece;
}

cake_err cake_arena_lock(cake_arena *arena, const char *what)
{
    if (arena->size && mlock(arena->base, arena->size))
        return cake_fail("memory", "%s: %zu bytes cannot be locked: %s", what, arena->size, strerror(errno));
    return CAKE_OK;
}

void cake_arena_close(cake_arena *arena)
{
    if (arena->base) {
        munmap(arena->base, arena->size ? arena->size : 1);
        atomic_fetch_sub(&open_bytes, arena->size);
    }
    *arena = (cake_arena){0};
}
