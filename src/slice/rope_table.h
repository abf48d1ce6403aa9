/* SPDX-License-Identifier: Apache-2.0
 *
 * The angles by which a wave's rows turn their heads, for each of the model's sets of rotary parameters.
 */
#ifndef CAKE_SLICE_ROPE_TABLE_H
#define CAKE_SLICE_ROPE_TABLE_H

#include "slice/layer.h"

/* Each member of the team keeps the frequencies of the row that it did last, which mostly serve for the next
 * one too. */
typedef struct cake_rope_table {
    double *freq; /* [n_thread, n_rope, stride] radians per position */
    int *epoch;   /* [n_thread, n_rope] which frequencies these are (cake_rope_epoch); -1: none yet */
    int stride;
    const cake_memory *memory; /* that the pass is in; NULL: the host's */
    /* [max_tok, n_rot / 2] owned: where the host computes them, if memory is not its own; else NULL. */
    float *cos[CAKE_MAX_ROPE], *sin[CAKE_MAX_ROPE];
} cake_rope_table;

void cake_rope_table_open(const cake_config *config, const cake_memory *memory, int n_thread, int max_tok,
                          cake_rope_table *rotation);
void cake_rope_table_close(cake_rope_table *rotation); /* zeros are fine */
/* Fills pass->cos and pass->sin, in double so that far positions stay exact, by a team on the host. No
 * barrier at the end. */
void cake_rope_table_fill(const cake_exec *exec, const cake_rope_table *rotation,
                          const cake_forward_ctx *pass);
/* Called by one member afterwards, behind a barrier: brings them to where the pass has them. */
void cake_rope_table_upload(const cake_rope_table *rotation, const cake_forward_ctx *pass);

#endif
