/* SPDX-License-Identifier: Apache-2.0
 *
 * A wave: the rows of many sequences that travel through all layers together. It is one contiguous block, so
 * that it crosses a link as one message:
 *
 *   cake_wave   header
 *   cake_row    rows[n_row]       sequence and position of each row
 *   cake_change changes[n_change] of page tables and recurrent states, applied in order before the rows
 *   float       body[n_row, dim]  the residual stream, 64-byte aligned
 *
 * The root (embed) fills it, slices change the body in place, the root (logits) reads it. n_row and n_change
 * are fixed before the body is written, since its place depends on them.
 */
#ifndef CAKE_TYPES_WAVE_H
#define CAKE_TYPES_WAVE_H

#include <stdbool.h>
#include <stddef.h>

#include "types/row.h"

/* KV cache groups of a model: layers with equal windows and heads share page numbers. */
#define CAKE_MAX_KV_GROUPS 4

typedef enum cake_change_kind {
    CAKE_CHANGE_MAP,   /* positions [index * CAKE_PAGE, +CAKE_PAGE) of the slot are stored in page */
    CAKE_CHANGE_COPY,  /* as MAP, and page gets a copy of page `from` */
    CAKE_CHANGE_SHARE, /* positions [0, index * CAKE_PAGE) of the slot use the pages of slot `from` */
    CAKE_CHANGE_STATE  /* the slot's recurrent states become a copy of those of slot `from` */
} cake_change_kind;

/* A recurrent state needs no clearing: a row at position 0 starts from zeros. */
typedef struct cake_change {
    int32_t kind;  /* cake_change_kind */
    int32_t group; /* KV cache group */
    int32_t slot, index, page, from;
} cake_change;

typedef struct cake_wave {
    int32_t kind; /* cake_wave_kind */
    int32_t lane;
    int32_t n_row, n_change;
    int32_t dim;
    int32_t unused; /* keeps the rows 8-byte aligned */
} cake_wave;

/* The body in GPU memory: where the wave arrives, and where it leaves from. NULL: in the wave itself. */
typedef struct cake_wave_buffers {
    const float *from;
    float *to;
} cake_wave_buffers;

typedef enum cake_wave_kind { CAKE_WAVE_ROWS, CAKE_WAVE_STOP } cake_wave_kind;

size_t cake_wave_bytes(int n_row, int n_change, int dim); /* of the whole wave */
size_t cake_wave_header_bytes(int n_row, int n_change);   /* of everything before the body */
cake_row *cake_wave_rows(cake_wave *wave);
cake_change *cake_wave_changes(cake_wave *wave);
float *cake_wave_body(cake_wave *wave);    /* [n_row, dim] */
bool cake_wave_generates(cake_wave *wave); /* all rows are generated ones */

/* Maximum number of pages of a group that one sequence holds while it grows to `length` positions, `step`
 * rows at a time. window: positions that a row sees, itself included; 0: all. */
int cake_pages_held(int window, int length, int step);

#endif
