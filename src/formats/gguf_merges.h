/* SPDX-License-Identifier: Apache-2.0
 *
 * Merges of a vocabulary of SentencePiece, which has scores instead.
 */
#ifndef CAKE_FORMATS_GGUF_MERGES_H
#define CAKE_FORMATS_GGUF_MERGES_H

#include <stdbool.h>

#include "formats/gguf.h"

typedef struct cake_gguf_piece {
    cake_gguf_text text;
    float score;
    bool joins; /* it can be a part or the result of a merge */
} cake_gguf_piece;

/* Appends the pairs of pieces that join to a piece, the best result first, as a list of JSON. */
void cake_gguf_merges_add(const cake_gguf_piece *piece, int64_t n, cake_buf *out);

#endif
