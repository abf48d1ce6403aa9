/* SPDX-License-Identifier: Apache-2.0
 *
 * The model's last layer. Of rows whose output nobody reads, usually all of a prompt but the last one, it
 * computes only K and V, which is at most a seventh of the work.
 *
 * Invariant: rows that are read, and all K and V, have the bits of cake_layer_forward over all rows.
 */
#ifndef CAKE_SLICE_LAST_LAYER_H
#define CAKE_SLICE_LAST_LAYER_H

#include "slice/layer.h"
#include "slice/rope_table.h"

typedef struct cake_last_layer {
    const cake_forward_ctx *all; /* the pass over all rows, from choose, borrowed */
    cake_forward_ctx pass;       /* of the rows that are read */
    cake_row *rows;              /* [max_row] owned: the same rows */
    int32_t *from;               /* [max_row] owned: their indices in the wave */
    const cake_memory *memory;   /* memory of the pass; NULL: host */
    cake_row *device_rows;       /* rows in that memory, borrowed; on the host rows itself */
    int32_t *device_from;        /* the same for from */
} cake_last_layer;

/* rows, from: [max_row] each, in `memory`; NULL for host memory. */
void cake_last_layer_open(int max_row, const cake_memory *memory, cake_row *rows, int32_t *from,
                          cake_last_layer *last);
void cake_last_layer_close(cake_last_layer *last); /* zeros are fine */
/* Called before the team starts: selects the rows that are read. False: so many that computing all is
 * better. */
bool cake_last_layer_choose(cake_last_layer *last, const cake_forward_ctx *pass);
/* Like cake_layer_forward for a layer of attention, but x of rows that are not read is unchanged. */
void cake_last_layer_forward(const cake_exec *exec, const cake_last_layer *last,
                             const cake_rope_table *rotation, const cake_layer_kind *kind,
                             const cake_layer_weights *w, const cake_layer_view *view, int32_t here);

#endif
