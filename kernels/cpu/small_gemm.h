/* SPDX-License-Identifier: Apache-2.0
 *
 * Product of small row-major matrices that stay in cache, with the vector functions of vec_*.h and step_*.h;
 * included once by each instruction set's file.
 *
 * Invariant: an element is one chain of fused multiply-adds, steps ascending, that begins at its current
 * value. Blocking of rows and columns changes no bits.
 */
#ifndef CAKE_KERNELS_CPU_SMALL_GEMM_H
#define CAKE_KERNELS_CPU_SMALL_GEMM_H

#define TILE_ROWS    4
#define TILE_VECTORS (N_REGISTERS == 16 ? 3 : 4) /* sums, a line and a value fit the registers */
#define TILE_DEPTH   64

/* The initial value of an element: its old value, that times its column's factor, or zero. */
typedef struct tile_start {
    bool zero;
    const float *factor; /* [n] of c, or NULL */
} tile_start;

/* c [rows, vectors * LANES] += a [rows, depth] b [depth, vectors * LANES]; the last vector has n lanes. */
INLINE void tile_add(float *c, int64_t c_row, const float *a, int64_t a_row, int64_t a_col, const float *b,
                     int64_t b_row, int depth, const int rows, const int vectors, int n,
                     const cake_dtype dtype, const tile_start start)
{
    vec sum[TILE_ROWS * TILE_VECTORS];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++) sum[r * vectors + v] =
        start.zero ? vec_set(0) : vec_load_n(c + r * c_row + v * LANES, n);
    if (start.factor)
        UNROLL for (int v = 0; v < vectors; v++)
        {
            vec factor = vec_load_n(start.factor + v * LANES, n);
            UNROLL for (int r = 0; r < rows; r++) sum[r * vectors + v] =
                vec_mul(sum[r * vectors + v], factor);
        }
    for (int k = 0; k < depth; k++, a += a_col, b += b_row) {
        vec line[TILE_VECTORS];
        UNROLL for (int v = 0; v < vectors; v++) line[v] = vec_load_n(b + v * LANES, n);
        UNROLL for (int r = 0; r < rows; r++)
        {
            vec value = vec_set(a[r * a_row]);
            UNROLL for (int v = 0; v < vectors; v++) sum[r * vectors + v] =
                step_add(value, line[v], sum[r * vectors + v], dtype);
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++)
        vec_store_n(c + r * c_row + v * LANES, sum[r * vectors + v], n);
}

INLINE void tile_rows(float *c, int64_t c_row, const float *a, int64_t a_row, int64_t a_col, const float *b,
                      int64_t b_row, int m, int depth, const int vectors, int n, const cake_dtype dtype,
                      const tile_start start)
{
    int i = 0;
    for (; i + TILE_ROWS <= m; i += TILE_ROWS)
        tile_add(c + i * c_row, c_row, a + i * a_row, a_row, a_col, b, b_row, depth, TILE_ROWS, vectors, n,
                 dtype, start);
    for (; i < m; i++)
        tile_add(c + i * c_row, c_row, a + i * a_row, a_row, a_col, b, b_row, depth, 1, vectors, n, dtype,
                 start);
}

/* Vectors of the next tile, of `left` ones: a tile of one has too few sums to hide an addition's latency. */
static int tile_vectors(int left)
{
    if (left > TILE_VECTORS)
        return left == TILE_VECTORS + 1 ? TILE_VECTORS - 1 : TILE_VECTORS;
    return left;
}

/* c [m, n] += a [m, depth] b [depth, n]; each matrix has its own row stride, a also a column stride. The
 * lines of b used by all rows of c stay in L1. An element of a and b is a step of dtype, of the size of a
 * float. */
INLINE void matrix_add_as(float *c, int64_t c_row, const float *a, int64_t a_row, int64_t a_col,
                          const float *b, int64_t b_row, int m, int n, int depth, const cake_dtype dtype,
                          tile_start start)
{
    for (int k = 0, part; k < depth; k += part, a += part * a_col, b += part * b_row) {
        part = depth - k < TILE_DEPTH ? depth - k : TILE_DEPTH;
        for (int j = 0, wide; j < n; j += wide) {
            tile_start at = {start.zero && !k, start.factor && !k ? start.factor + j : NULL};
            const int whole = (n - j) / LANES, vectors = tile_vectors(whole);
            wide = whole ? vectors * LANES : n - j;
            UNROLL for (int v = 1; v <= TILE_VECTORS; v++) if (v == vectors)
                tile_rows(c + j, c_row, a, a_row, a_col, b + j, b_row, m, part, v, LANES, dtype, at);
            if (!whole)
                tile_rows(c + j, c_row, a, a_row, a_col, b + j, b_row, m, part, 1, wide, dtype, at);
        }
    }
}

static void matrix_add(float *c, int64_t c_row, const float *a, int64_t a_row, int64_t a_col, const float *b,
                       int64_t b_row, int m, int n, int depth)
{
    matrix_add_as(c, c_row, a, a_row, a_col, b, b_row, m, n, depth, CAKE_F32, (tile_start){0});
}

#endif
