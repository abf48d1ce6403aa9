/* SPDX-License-Identifier: Apache-2.0
 *
 * The rotary angles of a wave's rows, for each of the model's sets of rotary parameters.
 */
#ifndef CAKE_SLICE_ROPE_TABLE_H
#define CAKE_SLICE_ROPE_TABLE_H

#include "slice/layer.h"

/* Each member of the team caches the frequencies of its latest row, which usually serve the next one too. */
typedef struct cake_rope_table {
    double *freq; /* [n_thread, n_rope, stride] radians per position */
    int *epoch;   /* [n_thread, n_rope] which frequencies these are (cake_rope_epoch); -1: none */
    int stride;
    const cake_memory *memory; /* memory of the pass; NULL: host */
    /* [max_row, n_rot / 2] owned: host buffers if memory is not the host's; else NULL. */
    float *cos[CAKE_MAX_ROPE], *sin[CAKE_MAX_ROPE];
} cake_rope_table;

void cake_rope_table_open(const cake_config *config, const cake_memory *memory, int n_thread, int max_row,
                          cake_rope_table *rotation);
void cake_rope_table_close(cake_rope_table *rotation); /* zeros are fine */
/* Fills pass->cos and pass->sin by a team on the host, in double so that far positions stay exact. No barrier
 * at the end. */
void cake_rope_table_fill(const cake_exec *exec, const cake_rope_table *rotation,
                          const cake_forward_ctx *pass);
/* Called by one member after a barrier: uploads them to the pass's memory. */
void cake_rope_table_upload(const cake_rope_table *rotation, const cake_forward_ctx *pass);

#endif
