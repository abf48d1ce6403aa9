/* SPDX-License-Identifier: Apache-2.0
 *
 * The epilogue of products, written with vec_*.h. In: a tile of finished sums. Out: the sums stored in
 * [n_row, n_out], or the best of them. Invariant: bias, then residual, each added in float32.
 */
#ifndef CAKE_KERNELS_CPU_EPILOGUE_H
#define CAKE_KERNELS_CPU_EPILOGUE_H

#include "kernels/cpu/row_ops.h"
#include "types/topk.h"

typedef struct ending {
    float *out;            /* [n_row, n_out] */
    const float *bias;     /* [n_out], or NULL */
    const float *residual; /* [n_row, n_out], or NULL */
    int64_t n_out;
    /* for scores, which have neither bias nor residual */
    cake_topk *best;    /* [n_row], or NULL */
    const bool *wanted; /* [n_row] */
    float cap;
} ending;

/* One row's scores of columns [column, last): sum, which has room for whole vectors. */
static void find_best(const ending *e, float *sum, int64_t row, int64_t column, int64_t last)
{
    cake_topk *best = &e->best[row];
    vec most = vec_set(-INFINITY);
    wholes size = whole_set(0);
    int64_t n = last - column;
    for (int64_t i = n; i % LANES; i++) /* changes nothing */
        sum[i] = sum[0];
    for (int64_t i = 0; i < n; i += LANES) {
        vec v = vec_load(sum + i);
        if (e->cap > 0)
            v = vec_soft_cap(v, e->cap);
        vec_store(sum + i, v);
        most = vec_max(most, v);
        size = whole_max(size, whole_size(v));
    }
    best->nonfinite |= whole_most(size) >= 0x7F800000;
    float least = cake_topk_min(best);
    bool enters = vec_most(most) >= least;
    for (int64_t i = 0; enters && i < n; i++)
        if (sum[i] >= least)
            cake_topk_add(best, (cake_ranked){sum[i], (int32_t)(column + i)});
    for (int64_t i = 0; e->wanted[row] && i < n; i += LANES)
        vec_store_n(e->out + row * e->n_out + column + i, vec_load(sum + i),
                    n - i < LANES ? (int)(n - i) : LANES);
}

/* Prefetches the memory where finish will store sums. */
INLINE void fetch_places(const ending *e, int64_t row, int rows, int64_t column, int columns)
{
    const int line = 64 / sizeof *e->out;
    for (int r = 0; !e->best && r < rows; r++)
        for (int c = 0; c < columns; c += line)
            prefetch_near((const char *)(e->out + (row + r) * e->n_out + column + c));
}

/* Sums of rows [row, row + rows) and columns [column, column + columns), as many of these as there are; a
 * rows are `pitch` floats apart. */
static void finish(const ending *e, float *sum, int64_t pitch, int64_t row, int rows, int64_t column,
                   int columns)
{
    int64_t last = column + columns < e->n_out ? column + columns : e->n_out;
    for (int r = 0; e->best && r < rows; r++)
        find_best(e, sum + r * pitch, row + r, column, last);
    if (e->best)
        return;
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
