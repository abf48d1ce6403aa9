/* SPDX-License-Identifier: Apache-2.0
 *
 * The recurrent states of one slice, one per sequence slot and recurrent layer. Slots mean the same on every
 * stage; the root assigns them and decides when a state is copied.
 */
#ifndef CAKE_SLICE_RECURRENT_STATE_H
#define CAKE_SLICE_RECURRENT_STATE_H

#include "base/arena.h"
#include "base/err.h"
#include "kernels/kernels.h"
#include "kernels/memory.h"
#include "types/wave.h"

typedef struct cake_state_shape {
    cake_deltanet layer; /* sizes of one layer; its weights and state pointers are unused */
    int n_layer;         /* recurrent layers of this slice; 0: no bytes */
    int n_slot;          /* concurrent sequences, plus saved states */
} cake_state_shape;

typedef struct cake_states {
    cake_state_shape shape;
    const cake_memory *memory; /* memory of the arena */
    cake_arena arena;
    float *data;    /* [n_slot, n_layer, state]: a sequence's states are contiguous */
    int32_t *next;  /* [n_slot] owned: the position after the slot's state */
    int64_t *waves; /* [n_slot] owned: number of the last wave with rows of the slot */
    int64_t wave;   /* number of the latest wave */
} cake_states;

size_t cake_states_slot_bytes(const cake_state_shape *shape); /* of one sequence in all layers of the slice */
size_t cake_states_bytes(const cake_state_shape *shape);      /* of everything that open allocates */
cake_err cake_states_open(const cake_state_shape *shape, const cake_memory *memory, cake_states *states);
cake_err cake_states_lock(cake_states *states); /* in physical memory, used or not */
void cake_states_close(cake_states *states);    /* zeros are fine */
/* Applies a CAKE_CHANGE_STATE of a wave's header; CAKE_ERR_FATAL (reported) if it is out of range. */
cake_err cake_states_copy(cake_states *states, const cake_change *change);
/* Checks that a wave's rows, whose slots are in range, continue the states: each slot's contiguous and
 * ascending, from position 0 or the one after its state. CAKE_ERR_FATAL (reported) if not; nothing else would
 * detect it. */
cake_err cake_states_follow(cake_states *states, const cake_row *rows, int n_row);
/* View of recurrent layer 0 <= layer < n_layer, without weights. */
cake_deltanet cake_states_layer(const cake_states *states, int layer);

#endif
