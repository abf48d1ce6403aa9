/* SPDX-License-Identifier: Apache-2.0
 *
 * Ids become a wave: row i of the body is the embedding of ids[i].
 */
#ifndef CAKE_EMBED_EMBED_H
#define CAKE_EMBED_EMBED_H

#include <stdint.h>

#include "kernels/kernels.h"
#include "model/model.h"
#include "types/wave.h"

/* ids [wave->n_tok], each in [0, n_vocab); the header and rows of the wave are already there. */
void cake_embed_fill(const cake_model *model, const cake_kernels *kernels, int n_thread, const int32_t *ids,
                     cake_wave *wave);
/* The same where a GPU has the embedding and is to have the body [n_tok, dim], too; there [n_tok]: for the
 * ids, in the same memory. It may still be under way. */
void cake_embed_fill_device(const cake_model *model, const cake_kernels *kernels, const int32_t *ids,
                            int n_tok, int32_t *device_ids, float *body);

#endif
