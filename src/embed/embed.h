/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks up the embeddings of a wave: row i of the body is that of ids[i].
 */
#ifndef CAKE_EMBED_EMBED_H
#define CAKE_EMBED_EMBED_H

#include <stdint.h>

#include "kernels/kernels.h"
#include "model/model.h"
#include "types/wave.h"

/* ids [wave->n_row], each in [0, n_vocab). Of models whose embedding has these parts: positions
 * [wave->n_row], rows of the table of positions; types [wave->n_row]: token types; those that the model does
 * not have count as 0. The wave's header and rows must be filled in. */
void cake_embed_fill(const cake_model *model, const cake_kernels *kernels, int n_thread, const int32_t *ids,
                     const int32_t *positions, const uint8_t *types, cake_wave *wave);
/* As cake_embed_fill, with embedding and body [n_row, dim] in device memory. device_ids [n_row] is a device
 * buffer. May return while the operation is in flight. */
void cake_embed_fill_device(const cake_model *model, const cake_kernels *kernels, const int32_t *ids,
                            int n_row, int32_t *device_ids, float *body);

#endif
