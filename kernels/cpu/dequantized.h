/* SPDX-License-Identifier: Apache-2.0
 *
 * Panels of quantised matrices, dequantised for the products of linear.h; included once by each instruction
 * set's file.
 *
 * In: rows as kernels/format.h has them. Out: a panel in float32 as linear.h multiplies it: the values of all
 * its columns for one k, then for the next one. Invariant: the product has the bits of the same matrix in
 * F32.
 */
#ifndef CAKE_KERNELS_CPU_DEQUANTIZED_H
#define CAKE_KERNELS_CPU_DEQUANTIZED_H

#include <string.h>

#include "kernels/cpu/pack.h"
#include "kernels/dequantize.h"
#include "kernels/format.h"
#include "kernels/tensor.h"

#define DEQUANTIZED_DEPTH  512 /* values of k that are dequantised at a time: whole blocks of every format */
#define DEQUANTIZED_PANELS 4   /* at most at a time: they stay in L2 while all rows use them */
#define DEQUANTIZED_FLOATS (DEQUANTIZED_DEPTH * PANEL)

/* to [n, PANEL] = values k to k + n, n <= DEQUANTIZED_DEPTH, of the rows of a panel; room [PANEL, n]. */
static void dequantize_panel(float *to, float *room, const cake_weight *w, int64_t panel, int k, int n)
{
    const size_t bytes = cake_weight_row_bytes(w);
    const uint16_t *index = cake_format_index(w);
    for (int column = 0; column < PANEL; column++) {
        int64_t row = panel * PANEL + column;
        if (row < w->n_out)
            dequantize_row(room + column * n, w->format, (const char *)w->data + (size_t)row * bytes, index,
                           w->n_in, k, n);
        else
            memset(room + column * n, 0, (size_t)n * sizeof *room);
    }
    for (int i = pack_panel((const char *)room, n, CAKE_F32, (char *)to); i < n; i++)
        for (int column = 0; column < PANEL; column++)
            to[i * PANEL + column] = room[column * n + i];
}

#endif
