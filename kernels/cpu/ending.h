/* SPDX-License-Identifier: Apache-2.0
 *
 * What becomes of the sums of a product, in the words of vec_*.h; linear.h and int8.h call. In: a tile of finished
 * sums. Out: their place in [n_tok, n_out]. Invariant: bias, then residual, each added in float32.
 */
#ifndef CAKE_KERNELS_CPU_ENDING_H
#define CAKE_KERNELS_CPU_ENDING_H

typedef struct ending {
    float *out;            /* [n_tok, n_out] */
    const float *bias;     /* [n_out], or NULL */
    const float *residual; /* [n_tok, n_out], or NULL */
    int64_t n_out;
} ending;

/* Sums of rows [row, row + rows) and columns [column, column + columns), as many of these as there are; a row's are
 * `pitch` floats behind those of the row before. */
static void finish(const ending *e, const float *sum, int64_t pitch, int64_t row, int rows, int64_t column,
                   int columns)
{
    int64_t last = column + columns < e->n_out ? column + columns : e->n_out;
    for (int64_t at = row * e->n_out; at < (row + rows) * e->n_out; at += e->n_out, sum += pitch)
        for (int64_t c = column; c < last; c += LANES) {
            int n = last - c < LANES ? (int)(last - c) : LANES;
            vec v = vec_load(sum + (c - column));
            if (e->bias)
                v = vec_add(v, vec_load_n(e->bias + c, n));
            if (e->residual)
                v = vec_add(v, vec_load_n(e->residual + at + c, n));
            vec_store_n(e->out + at + c, v, n);
        }
}

#endif
