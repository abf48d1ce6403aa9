/* SPDX-License-Identifier: Apache-2.0
 *
 * Drafts by the model itself: multi-token prediction (DeepSeek-AI 2024, DeepSeek-V3 Technical Report, 2.2).
 * A layer behind the last one takes the hidden state of a position, after the final norm, and the embedding
 * of the token that follows it:
 *
 *   x = join [norm(embedding), norm(hidden state)];  scores = head(norm(layer(x)))
 *
 * and predicts the token after that one. Embedding and head are the model's.
 */
#ifndef CAKE_ENGINE_MTP_H
#define CAKE_ENGINE_MTP_H

#include "kernels/kernels.h"
#include "logits/logits.h"
#include "model/model.h"
#include "slice/slice.h"
#include "types/wave.h"

typedef struct cake_mtp cake_mtp;

typedef struct cake_mtp_setup {
    const cake_model *model;
    const cake_kernels *kernels; /* of the host; they loaded embedding, head and layer */
    cake_slice *slice;           /* the layer; borrowed */
    size_t wave_bytes;           /* of the largest wave */
    int max_row;
} cake_mtp_setup;

cake_err cake_mtp_open(const cake_mtp_setup *setup, cake_mtp **out);
/* Bytes of memory that open takes, without the slice. Pure. */
size_t cake_mtp_bytes(const cake_model *model, const cake_kernels *kernels, size_t wave_bytes, int max_row);
void cake_mtp_close(cake_mtp *mtp);

/* The token that follows each row of the next wave [max_row], to be filled in. */
int32_t *cake_mtp_ids(cake_mtp *mtp);
/* Runs the layer over a wave that has passed all others, and is not changed. */
cake_err cake_mtp_forward(cake_mtp *mtp, int n_thread, cake_wave *wave);
/* The work of all waves so far, of the layer. */
const cake_roofline *cake_mtp_roofline(const cake_mtp *mtp);
/* Whether the layer can go on after a row of that wave: the next position is in a page that it has. */
bool cake_mtp_goes_on(const cake_mtp *mtp, int row);
/* Runs the layer once more, after rows [n] of the latest wave that it ran, as if the tokens id [n] that it
 * predicted there followed. These n rows are its latest wave then. */
cake_err cake_mtp_go_on(cake_mtp *mtp, int n_thread, const int32_t *row, int n, const int32_t *id);
/* The likeliest second token after rows [n] of the latest wave, into id [n]. */
void cake_mtp_predict(cake_mtp *mtp, int n_thread, cake_logits *logits, const int32_t *row, int n,
                      int32_t *id);

#endif
