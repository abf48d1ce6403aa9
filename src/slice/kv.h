/* SPDX-License-Identifier: Apache-2.0
 *
 * The KV cache of one slice and one KV cache group: its own bytes behind page numbers that mean the same on
 * every stage. The root decides which page holds what; here the decisions that travel in wave headers are
 * only followed.
 */
#ifndef CAKE_SLICE_KV_H
#define CAKE_SLICE_KV_H

#include "base/arena.h"
#include "base/err.h"
#include "kernels/kernels.h"
#include "kernels/memory.h"
#include "types/wave.h"

typedef struct cake_kv_shape {
    cake_dtype dtype;
    int n_kv, head_dim;
    int n_layer; /* of this slice and group; 0: there are tables and no bytes */
    int window;  /* positions that a row sees; 0: all */
    int n_slot;  /* sequences at a time */
    int n_page;  /* pages that exist; CAKE_PAGE positions each */
    int stride;  /* pages that the longest sequence needs */
} cake_kv_shape;

typedef struct cake_kv_cache {
    cake_kv_shape shape;
    const cake_memory *memory; /* where the arena is */
    cake_arena arena;
    int32_t *table;        /* [n_slot, stride] pages of each sequence, for the host to read */
    int32_t *device_table; /* the same for the kernels; where memory is the host's it is table itself */
    char *pages; /* [n_page, n_layer, 2, n_kv, CAKE_PAGE * head_dim] (cake_kv says in which order): what a
                     * sequence uses lies together */
    int used, touched; /* pages below were given out; have memory */
} cake_kv_cache;

size_t cake_kv_page_bytes(const cake_kv_shape *shape); /* of one page in all layers of the slice */
size_t cake_kv_bytes(const cake_kv_shape *shape);      /* of everything: what open takes */
cake_err cake_kv_open(const cake_kv_shape *shape, const cake_memory *memory, cake_kv_cache *kv);
cake_err cake_kv_lock(cake_kv_cache *kv); /* keeps all of it in physical memory, used or not */
void cake_kv_close(cake_kv_cache *kv);    /* zeros are fine */
/* Follows a page change of a wave's header; CAKE_ERR_FATAL, said, if it is out of range. */
cake_err cake_kv_apply(cake_kv_cache *kv, const cake_change *change);
/* The system gives a page memory, and clears it, when it is first touched. The members of a team do so here
 * for pages that were never used, each for a share, before one member alone would have to for all. Afterwards
 * one of them calls cake_kv_touched. */
void cake_kv_touch(const cake_exec *exec, const cake_kv_cache *kv);
void cake_kv_touched(cake_kv_cache *kv);
/* The kernels' view of layer 0 <= layer < n_layer. */
cake_kv cake_kv_layer(const cake_kv_cache *kv, int layer);

#endif
