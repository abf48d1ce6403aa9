/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory that holds the operands of a table's operations: weights, caches, states, activations. A table
 * for the CPU has no cake_memory: the functions below are then an arena and memmove. Device memory is touched
 * only by the table's operations and these functions.
 *
 * Invariant: every call is ordered with the operations asked for before and after it. One thread at a time
 * calls, except for upload while weights are loaded.
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
    /* Zeroed. `what` names the contents in messages. */
    cake_err (*open)(cake_arena *arena, const char *what, size_t size);
    void (*close)(cake_arena *arena);
    /* From the host. The host's bytes may change as soon as it returns. */
    void (*upload)(void *to, const void *from, size_t bytes);
    void (*download)(void *to, const void *from, size_t bytes); /* to the host; complete when it returns */
    void (*copy)(void *to, const void *from, size_t bytes);     /* within the memory */
    /* Pins page-aligned host memory that is a frequent target of download, so that the device writes to it
     * directly. It must be unpinned before it is freed; unpinning memory that is not pinned does nothing. */
    void (*pin)(void *host, size_t bytes);
    void (*unpin)(void *host);
    /* Uploads n > 0 rows for operations to read, and keeps a copy for the host. */
    void (*upload_rows)(cake_row *to, const cake_row *rows, int n);
    /* Calls work(arg), which only asks for operations; or replays those that it asked for when it was last
     * called with the same key [size]. The key must cover all that these operations depend on, except the
     * contents of the memory (rows of upload_rows included). */
    void (*replay)(const void *key, size_t size, void (*work)(void *arg), void *arg);
    /* Records event i after all operations asked for so far; they may still be in flight. */
    void (*record_event)(int i);
    bool (*event_done)(int i); /* the operations before event i have finished or failed */
    cake_err (*check)(void);   /* an error if an operation has failed; it has been reported */
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
        memory->upload(to, from, bytes);
    else
        memmove(to, from, bytes);
}

static inline void cake_memory_download(const cake_memory *memory, void *to, const void *from, size_t bytes)
{
    if (memory)
        memory->download(to, from, bytes);
    else
        memmove(to, from, bytes);
}

static inline void cake_memory_pin(const cake_memory *memory, void *host, size_t bytes)
{
    if (memory)
        memory->pin(host, bytes);
}

static inline void cake_memory_unpin(const cake_memory *memory, void *host)
{
    if (memory)
        memory->unpin(host);
}

static inline void cake_memory_copy(const cake_memory *memory, void *to, const void *from, size_t bytes)
{
    if (memory)
        memory->copy(to, from, bytes);
    else
        memmove(to, from, bytes);
}

#endif
