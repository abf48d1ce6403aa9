/* SPDX-License-Identifier: Apache-2.0
 *
 * A row of a wave: which sequence and position it is, and how it is to be computed.
 */
#ifndef CAKE_TYPES_ROW_H
#define CAKE_TYPES_ROW_H

#include <stdint.h>

#define CAKE_PAGE 64 /* positions of a KV page, and the grid on which prompts are cut */

typedef enum cake_row_kind {
    CAKE_ROW_PROMPT,    /* takes the prefill kernels, whenever it is computed */
    CAKE_ROW_GENERATED, /* takes the decode kernels */
    CAKE_ROW_REPLAYED   /* generated earlier, computed again after an eviction: decode kernels */
} cake_row_kind;

typedef struct cake_row {
    int32_t slot;     /* sequence slot: the row of the page tables */
    int32_t pos;      /* position in the sequence, from 0 */
    int32_t kind;     /* cake_row_kind */
    int32_t rope_len; /* what rotary embeddings may depend on: the prompt's length, or pos + 1 behind it */
    int32_t
        nonfinite; /* 0: all of the body is finite; else where it first was not, CAKE_ROW_NONFINITE(layer) */
    int32_t no_output; /* nobody reads its body behind the last layer: of that only K and V are made */
} cake_row;

#define CAKE_ROW_NONFINITE(layer) ((layer) + 2) /* of layer 0 and up; -1: the embedding */

#endif
