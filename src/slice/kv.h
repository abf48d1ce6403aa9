/* SPDX-License-Identifier: Apache-2.0
 *
 * The KV cache of one slice and one KV cache group. Page numbers mean the same on every stage; each stage has
 * its own bytes. The root decides which page holds what; this follows the changes in wave headers.
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
    int n_value;    /* of latent attention (cake_kv); else 0 */
    int n_layer;    /* of this slice and group; 0: tables only, no bytes */
    int window;     /* positions visible to a row; 0: all */
    bool both_ways; /* as in cake_kv */
    int n_slot;     /* concurrent sequences */
    int n_page;     /* number of pages of CAKE_PAGE positions */
    int stride;     /* pages of the longest sequence */
} cake_kv_shape;

typedef struct cake_kv_cache {
    cake_kv_shape shape;
    const cake_memory *memory; /* memory of the arena */
    cake_arena arena;
    int32_t *table;        /* [n_slot, stride] page table on the host */
    int32_t *device_table; /* the same for kernels; equal to table if memory is the host's */
    char *pages; /* [n_page, n_layer, 2, n_kv, CAKE_PAGE lines] (order within: cake_kv): what a sequence uses
                  * is contiguous. Latent attention has 1 in place of the 2. */
    int used, touched; /* number of pages that were allocated; that have physical memory */
} cake_kv_cache;

size_t cake_kv_page_bytes(const cake_kv_shape *shape); /* of one page in all layers of the slice */
size_t cake_kv_bytes(const cake_kv_shape *shape);      /* of everything that open allocates */
cake_err cake_kv_open(const cake_kv_shape *shape, const cake_memory *memory, cake_kv_cache *kv);
cake_err cake_kv_lock(cake_kv_cache *kv); /* locks all of it in physical memory */
void cake_kv_close(cake_kv_cache *kv);    /* zeros are fine */
/* Applies a page change of a wave's header; CAKE_ERR_FATAL (reported) if it is out of range. */
cake_err cake_kv_apply(cake_kv_cache *kv, const cake_change *change);
/* Touches pages that were never used, divided among the members of a team: the system allocates and clears a
 * page at its first access, which one member alone would otherwise do for all. Afterwards one member calls
 * cake_kv_touched. */
void cake_kv_touch(const cake_exec *exec, const cake_kv_cache *kv);
void cake_kv_touched(cake_kv_cache *kv);
/* The kernels' view of layer 0 <= layer < n_layer. */
cake_kv cake_kv_layer(const cake_kv_cache *kv, int layer);

#endif
