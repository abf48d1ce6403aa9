/* SPDX-License-Identifier: Apache-2.0
 *
 * The recurrent states of one slice: for each sequence slot what its recurrent layers keep of the sequence.
 * Slots mean the same on every stage; the root decides which sequence is in which, and when a state is
 * copied.
 */
#ifndef CAKE_SLICE_RECURRENT_STATE_H
#define CAKE_SLICE_RECURRENT_STATE_H

#include "base/arena.h"
#include "base/err.h"
#include "kernels/kernels.h"
#include "kernels/memory.h"
#include "types/wave.h"

typedef struct cake_state_shape {
    cake_deltanet layer; /* the sizes of one layer; weights and states are of no interest here */
    int n_layer;         /* recurrent layers of this slice; 0: there are no bytes */
    int n_slot;          /* sequences at a time, and states that are kept beside theirs */
} cake_state_shape;

typedef struct cake_states {
    cake_state_shape shape;
    const cake_memory *memory; /* where the arena is */
    cake_arena arena;
    float *data;    /* [n_slot, n_layer, state]: what a sequence has lies together */
    int32_t *next;  /* [n_slot] owned: the position that continues the slot's state */
    int64_t *waves; /* [n_slot] owned: the number of the last wave that had rows of the slot */
    int64_t wave;   /* waves that there were: the number of the latest */
} cake_states;

size_t cake_states_slot_bytes(const cake_state_shape *shape); /* of one sequence in all layers of the slice */
size_t cake_states_bytes(const cake_state_shape *shape);      /* of everything: what open takes */
cake_err cake_states_open(const cake_state_shape *shape, const cake_memory *memory, cake_states *states);
cake_err cake_states_lock(cake_states *states); /* in memory, whether used or not */
void cake_states_close(cake_states *states);    /* zeros are fine */
/* Follows a CAKE_CHANGE_STATE of a wave's header; CAKE_ERR_FATAL, said, if it is out of range. */
cake_err cake_states_copy(cake_states *states, const cake_change *change);
/* Whether the rows of a wave, whose slots are in range, go on where the states are: each slot's together and
 * upwards, from position 0 or the one after the last. CAKE_ERR_FATAL, said, if not: then nothing else would
 * tell. */
cake_err cake_states_follow(cake_states *states, const cake_row *rows, int n_tok);
/* Where the states of recurrent layer 0 <= layer < n_layer are, in a view that has no weights yet. */
cake_deltanet cake_states_layer(const cake_states *states, int layer);

#endif
