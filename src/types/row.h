/* SPDX-License-Identifier: Apache-2.0
 *
 * A row of a wave: its sequence and position, and how it is computed.
 */
#ifndef CAKE_TYPES_ROW_H
#define CAKE_TYPES_ROW_H

#include <stdint.h>

#define CAKE_PAGE 64 /* positions in a KV page, and the grid on which prompts are cut */

typedef enum cake_row_kind {
    CAKE_ROW_PROMPT,    /* always takes the prefill kernels, whenever it is computed */
    CAKE_ROW_GENERATED, /* takes the decode kernels */
    CAKE_ROW_REPLAYED   /* computed again after an eviction or a resume: decode kernels */
} cake_row_kind;

typedef struct cake_row {
    int32_t slot;      /* sequence slot: the row of the page tables */
    int32_t pos;       /* position in the sequence, from 0 */
    int32_t kind;      /* cake_row_kind */
    int32_t rope_len;  /* length for rotary embeddings: the prompt's, or pos + 1 after the prompt; attention
                       * that goes both ways ends there, too */
    int32_t nonfinite; /* 0: finite so far; else CAKE_ROW_NONFINITE(first layer that was not) */
    int32_t no_output; /* its output is not needed: the last layer computes only its K and V */
} cake_row;

#define CAKE_ROW_NONFINITE(layer) ((layer) + 2) /* layer: from 0; -1: the embedding */

#endif
