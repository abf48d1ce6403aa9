/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the operands of a table's operations lie: weights, caches, states, activations. Of tables for the CPU
 * that is the host's memory, and their cake_kernels has no cake_memory: then what follows is an arena,
 * memcpy, and no wait. Elsewhere nobody but the table's operations and these functions touches what is at
 * such an address.
 *
 * All of it is ordered with the operations that are asked for before and after, by one thread at a time (but
 * for put while weights are loaded).
 */
#ifndef CAKE_KERNELS_MEMORY_H
#define CAKE_KERNELS_MEMORY_H

#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "types/row.h"

typedef struct cake_memory {
    const char *name; /* "GPU memory" */
    /* Zeroed. What says whose memory it is. */
    cake_err (*open)(cake_arena *arena, const char *what, size_t size);
    void (*close)(cake_arena *arena);
    /* From the host, whose bytes may be changed as soon as it returns. */
    void (*put)(void *to, const void *from, size_t bytes);
    void (*get)(void *to, const void *from, size_t bytes);  /* to the host, where they are when it returns */
    void (*copy)(void *to, const void *from, size_t bytes); /* within the memory */
    /* Says that get will often bring bytes to this memory of the host, which begins at a page: they may then
     * come there directly, without a detour, until it is taken back, as it has to be before it is freed.
     * NULL: that gains nothing. Taking back what was not lent is fine. */
    void (*lend)(void *host, size_t bytes);
    void (*take_back)(void *host);
    /* put of n > 0 rows that operations take; a copy stays for the host to read. */
    void (*put_rows)(cake_row *to, const cake_row *rows, int n);
    /* Calls work(arg), which does nothing but ask for operations; or, without a call, does again what it
     * asked for when it was last called with the same key [size]. The key has to tell all that these
     * operations depend on, but for what lies in the memory, rows of put_rows included. */
    void (*repeat)(const void *key, size_t size, void (*work)(void *arg), void *arg);
    void (*flag)(
        int i); /* sets flag i behind all operations asked for so far, which may still be under way */
    bool (*passed)(int i);   /* the operations have come to flag i, or have failed */
    cake_err (*check)(void); /* whether an operation has failed; if so that has been said */
} cake_memory;

static inline cake_err cake_memory_open(const cake_memory *memory, cake_arena *arena, const char *what,
                                        size_t size)
{
    return memory ? memory->open(arena, what, size) : cake_arena_open(arena, what, size);
}

static inline void cake_memory_close(const cake_memory *memory, cake_arena *arena) /* zeros are fine */
{
    if (!memory)
        cake_arena_close(arena);
    else if (arena->base)
        memory->close(arena);
}

static inline void cake_memory_upload(const cake_memory *memory, void *to, const void *from, size_t bytes)
{
    if (memory)
        memory->put(to, from, bytes);
    else
        memmove(to, from, bytes);
}

static inline void cake_memory_download(const cake_memory *memory, void *to, const void *from, size_t bytes)
{
    if (memory)
        memory->get(to, from, bytes);
    else
        memmove(to, from, bytes);
}

static inline void cake_memory_pin(const cake_memory *memory, void *host, size_t bytes)
{
    if (memory && memory->lend)
        memory->lend(host, bytes);
}

static inline void cake_memory_unpin(const cake_memory *memory, void *host)
{
    if (memory && memory->take_back)
        memory->take_back(host);
}

static inline void cake_memory_copy(const cake_memory *memory, void *to, const void *from, size_t bytes)
{
    if (memory)
        memory->copy(to, from, bytes);
    else
        memmove(to, from, bytes);
}

#endif
