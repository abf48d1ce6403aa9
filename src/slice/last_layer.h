/* SPDX-License-Identifier: Apache-2.0
 *
 * The model's last layer: of rows whose body nobody reads behind it only K and V are wanted, which is a
 * seventh of its work or less. Of a prompt all rows but the last one are such, mostly.
 *
 * Invariant: the bits of rows that are read, and of all K and V, are those of cake_layer_forward over all
 * rows.
 */
#ifndef CAKE_SLICE_LAST_LAYER_H
#define CAKE_SLICE_LAST_LAYER_H

#include "slice/layer.h"
#include "slice/rope_table.h"

typedef struct cake_last_layer {
    cake_forward_ctx pass;     /* of the rows that are read */
    cake_row *rows;            /* [max_tok] owned: theirs */
    int32_t *from;             /* [max_tok] owned: their places in the wave */
    const cake_memory *memory; /* that the pass is in; NULL: the host's */
    cake_row *device_rows;     /* rows in that memory, borrowed; on the host: rows itself */
    int32_t *device_from;      /* the same of from */
} cake_last_layer;

/* rows, from: [max_tok] each, in `memory`; NULL if that is the host's. */
void cake_last_layer_open(int max_tok, const cake_memory *memory, cake_row *rows, int32_t *from,
                          cake_last_layer *last);
void cake_last_layer_close(cake_last_layer *last); /* zeros are fine */
/* Called before the team begins: finds which rows of a wave are read. False: so many that all had better be
 * computed. */
bool cake_last_layer_choose(cake_last_layer *last, const cake_forward_ctx *pass);
/* As cake_layer_forward for a layer of attention, but x of rows that are not read stays as it was. */
void cake_last_layer_forward(const cake_exec *exec, const cake_last_layer *last, const cake_forward_ctx *pass,
                             const cake_rope_table *rotation, const cake_layer_kind *kind,
                             const cake_layer_weights *w, const cake_layer_view *view, int32_t here);

#endif
