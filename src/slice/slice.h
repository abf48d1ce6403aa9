/* SPDX-License-Identifier: Apache-2.0
 *
 * A slice: consecutive layers on one rank. forward changes the body of a wave in place. open allocates
 * everything; forward allocates nothing.
 */
#ifndef CAKE_SLICE_SLICE_H
#define CAKE_SLICE_SLICE_H

#include "base/err.h"
#include "kernels/kernels.h"
#include "kernels/roofline.h"
#include "model/model.h"
#include "types/wave.h"

typedef struct cake_slice cake_slice;

typedef struct cake_slice_shape {
    int first, count;               /* layers */
    int max_row;                    /* rows of the largest wave */
    int n_slot;                     /* concurrent sequences */
    int n_saved;                    /* additional slots for saved recurrent states */
    int n_page[CAKE_MAX_KV_GROUPS]; /* per KV cache group, as on every stage */
    int context;                    /* positions of the longest sequence */
    cake_dtype kv_dtype;
    int n_thread;
    int n_decode; /* threads for waves that generate; 0: all */
} cake_slice_shape;

/* Bytes of one page of a KV cache group in all layers of the slice; of one sequence's recurrent states; of
 * the cache (all pages, tables and states). Pure. */
size_t cake_slice_page_bytes(const cake_config *config, const cake_slice_shape *shape, int group);
size_t cake_slice_state_bytes(const cake_config *config, const cake_slice_shape *shape);
size_t cake_slice_kv_bytes(const cake_config *config, const cake_slice_shape *shape);
/* Bytes of scratch memory. */
size_t cake_slice_scratch_bytes(const cake_model *model, const cake_kernels *kernels,
                                const cake_slice_shape *shape);

/* The model must have these layers loaded and outlive the slice. */
cake_err cake_slice_open(const cake_model *model, const cake_kernels *kernels, const cake_slice_shape *shape,
                         cake_slice **out);
/* Locks what cake_slice_kv_bytes counts in physical memory. */
cake_err cake_slice_lock(cake_slice *slice);
void cake_slice_close(cake_slice *slice);
/* Roofline of all waves so far. */
const cake_roofline *cake_slice_roofline(const cake_slice *slice);

/* How all waves so far met experts. */
const cake_expert_use *cake_slice_experts(const cake_slice *slice);

/* Runs all layers over all rows. way: NULLs on the host. The calling thread calls between(arg, true) before
 * the first and after each layer, to progress messages and time layers; on a device it also calls
 * between(arg, false) repeatedly while waiting. */
cake_err cake_slice_forward(cake_slice *slice, cake_wave *wave, cake_wave_buffers way,
                            void (*between)(void *arg, bool layer), void *arg);

#endif
