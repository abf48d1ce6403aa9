/* SPDX-License-Identifier: Apache-2.0
 *
 * A wave: the rows of many sequences that travel through all layers together. It is one contiguous block, so
 * that it crosses a link as one message:
 *
 *   cake_wave   header
 *   cake_row    rows[n_tok]       which sequence and position each row is
 *   cake_page   pages[n_page]     changes of the page tables, to be applied before the rows
 *   float       body[n_tok, dim]  the residual stream, 64-byte aligned
 *
 * The root (embed) fills it, slices change the body in place, the root (logits) reads it. n_tok and n_page are
 * fixed before the body is written, since its place depends on them.
 */
#ifndef CAKE_BASE_WAVE_H
#define CAKE_BASE_WAVE_H

#include <stddef.h>
#include <stdint.h>

#define CAKE_PAGE 64 /* positions of a KV page, and the grid on which prompts are cut */

typedef enum cake_row_kind {
    CAKE_ROW_PROMPT,    /* takes the prefill kernels, whenever it is computed */
    CAKE_ROW_GENERATED, /* takes the decode kernels */
    CAKE_ROW_REPLAYED   /* generated earlier, computed again after an eviction: decode kernels */
} cake_row_kind;

typedef struct cake_row {
    int32_t slot; /* sequence slot: the row of the page tables */
    int32_t pos;  /* position in the sequence, from 0 */
    int32_t kind; /* cake_row_kind */
} cake_row;

typedef struct cake_page {
    int32_t class; /* KV class: 0 is full attention */
    int32_t slot;
    int32_t index; /* positions [index * CAKE_PAGE, +CAKE_PAGE) of the slot ... */
    int32_t page;  /* ... are kept in this page */
} cake_page;

typedef struct cake_wave {
    int32_t kind; /* cake_wave_kind */
    int32_t lane;
    int32_t n_tok, n_page;
    int32_t dim;
    int32_t unused; /* keeps the rows 8-byte aligned */
} cake_wave;

typedef enum cake_wave_kind { CAKE_WAVE_ROWS, CAKE_WAVE_STOP } cake_wave_kind;

size_t cake_wave_bytes(int n_tok, int n_page, int dim); /* of the whole block */
cake_row *cake_wave_rows(cake_wave *wave);
cake_page *cake_wave_pages(cake_wave *wave);
float *cake_wave_body(cake_wave *wave); /* [n_tok, dim] */

#endif
