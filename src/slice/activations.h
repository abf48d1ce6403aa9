/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of the activations between a wave's arrival and its departure: one buffer for each name of
 * cake_forward_ctx, used by all layers in turn.
 */
#ifndef CAKE_SLICE_ACTIVATIONS_H
#define CAKE_SLICE_ACTIVATIONS_H

#include "base/arena.h"
#include "slice/layer.h"

typedef struct cake_activations {
    const cake_memory *memory; /* of the arena */
    cake_arena arena;
    cake_groups groups; /* choices of experts of the wave's rows */
    cake_groups heads;  /* rows of a block of latent attention by head */
    /* on a device; else NULL: */
    float *body;    /* [max_row, dim] the residual stream of a wave */
    cake_row *rows; /* [max_row] for kernels to read and mark */
    cake_row *read; /* [max_row] rows whose output of the last layer is read */
    int32_t *from;  /* [max_row] where they stand in the wave */
} cake_activations;

/* Bytes of the arena for waves of max_row rows. Pure. */
size_t cake_activations_bytes(const cake_model *model, const cake_kernels *kernels, int max_row);
/* Sets the buffers of pass, whose config and kernels are set. Close it also after an error. */
cake_err cake_activations_open(const cake_model *model, int max_row, cake_forward_ctx *pass,
                               cake_activations *out);
void cake_activations_close(cake_activations *activations); /* zeros are fine */

#endif
