/* SPDX-License-Identifier: Apache-2.0
 *
 * In: state changes and rows from waves. Out: views for the kernels. Invariant: `next` of a slot is the
 * position after the last one in its state.
 */
#include "slice/recurrent_state.h"

#include <stdlib.h>

#include "base/alloc.h"

/* Floats of one layer and slot, padded to a cache line. */
static int64_t layer_size(const cake_state_shape *shape)
{
    return (int64_t)(cake_arena_round((size_t)cake_delta_state_size(&shape->layer) * sizeof(float)) /
                     sizeof(float));
}

size_t cake_states_slot_bytes(const cake_state_shape *shape)
{
    return (size_t)shape->n_layer * (size_t)layer_size(shape) * sizeof(float);
}

size_t cake_states_bytes(const cake_state_shape *shape)
{
    return (size_t)shape->n_slot * cake_states_slot_bytes(shape);
}

cake_err cake_states_open(const cake_state_shape *shape, const cake_memory *memory, cake_states *states)
{
    *states = (cake_states){.shape = *shape, .memory = memory};
    if (!shape->n_layer)
        return CAKE_OK;
    cake_err err = cake_memory_open(memory, &states->arena, "recurrent states", cake_states_bytes(shape));
    if (err)
        return err;
    states->data = cake_arena_take(&states->arena, (size_t)shape->n_slot * cake_states_slot_bytes(shape));
    states->next = cake_alloc((size_t)shape->n_slot, sizeof *states->next);
    states->waves = cake_alloc((size_t)shape->n_slot, sizeof *states->waves);
    return CAKE_OK;
}

cake_err cake_states_lock(cake_states *states)
{
    return cake_arena_lock(&states->arena, "recurrent states");
}

void cake_states_close(cake_states *states)
{
    cake_memory_close(states->memory, &states->arena);
    free(states->next);
    free(states->waves);
    *states = (cake_states){0};
}

cake_err cake_states_copy(cake_states *states, const cake_change *c)
{
    const cake_state_shape *s = &states->shape;
    size_t bytes = cake_states_slot_bytes(s);
    if (c->slot < 0 || c->slot >= s->n_slot || c->from < 0 || c->from >= s->n_slot)
        return cake_fail("slice", "a wave's header has a state copy out of range: slot %d from slot %d",
                         c->slot, c->from);
    if (!s->n_layer)
        return CAKE_OK;
    cake_memory_copy(states->memory, (char *)states->data + (size_t)c->slot * bytes,
                     (char *)states->data + (size_t)c->from * bytes, bytes);
    states->next[c->slot] = states->next[c->from];
    return CAKE_OK;
}

cake_err cake_states_follow(cake_states *states, const cake_row *rows, int n_row)
{
    if (!states->shape.n_layer)
        return CAKE_OK;
    states->wave++;
    for (int i = 0; i < n_row; i++) {
        int slot = rows[i].slot;
        bool first = i == 0 || rows[i - 1].slot != slot;
        if ((first && states->waves[slot] == states->wave) ||
            (rows[i].pos != states->next[slot] && !(first && rows[i].pos == 0)))
            return cake_fail("slice", "row %d of a wave, position %d, does not continue the state of slot %d",
                             i, rows[i].pos, slot);
        states->waves[slot] = states->wave;
        states->next[slot] = rows[i].pos + 1;
    }
    return CAKE_OK;
}

cake_deltanet cake_states_layer(const cake_states *states, int layer)
{
    const cake_state_shape *s = &states->shape;
    cake_deltanet view = s->layer;
    view.state = states->data + layer * layer_size(s);
    view.step = s->n_layer * layer_size(s);
    return view;
}
