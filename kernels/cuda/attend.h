/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by attention of prompt rows and of generated rows: a warp's lines, queries as fragments, the online
 * softmax (Milakov & Gimelshein 2018; in tiles as in Dao 2023), and the positions that a line sees.
 *
 * A line is a row and a query head of the group that shares a head of K and V. A warp has tiles of 16 lines
 * and goes through positions in ascending order, in parts of 32, half a page; that many scores and the sums
 * of heads of 256 fit the registers.
 *
 * Invariant: a line's bits depend on its own positions only. Parts begin at multiples of 32. Positions that a
 * line does not see have the weight 0, and leave sums and the largest score as they are, bit for bit; where
 * all lines see all of a part nobody asks for each of them (ALL), which gives the same bits.
 *
 * Pages of K hold pairs of elements of 64 positions side by side, pages of V pairs of positions (kernels.h).
 * A lane (g = lane / 4, t = lane % 4 of mma.h) takes chunks of 16 bytes: of K the pair of 4 neighbouring
 * positions, which are column g of four tiles; of V 4 neighbouring elements of a pair of positions, likewise.
 * So position 4 g + j of a part is column g of tile j, the scores that a lane gets are those of positions 8 t
 * + j and + 4, and they are already where the product with V takes them from. Each chunk of a part is taken
 * by one lane of a warp.
 */
#ifndef CAKE_KERNELS_CUDA_ATTEND_H
#define CAKE_KERNELS_CUDA_ATTEND_H

#include "kernels/cuda/cp_async.h"
#include "kernels/cuda/layout.h"
#include "kernels/cuda/mma.h"

enum {
    LINES = 16,       /* of a tile */
    WARPS = 4,        /* of a block */
    PART = 32,        /* positions of a part */
    PAIRS = PART / 2, /* pairs of positions in a part */
    K_ROW =
        CAKE_PAGE / 4, /* chunks of 16 bytes of a pair of elements in a page of K; a part has half of them */
    COLUMNS = 4        /* tiles of 8 positions in a part */
};

struct attention {
    void *out; /* [n_row, n_head, head_dim] of dtype `is`: floats, or the input type of a product */
    cake_dtype is;
    const float *q; /* [n_row, n_head, head_dim] */
    cake_kv kv;
    const cake_row *rows;
    int n_row, n_head, group;
    /* A score is an exponent of 2: scale > 0 times q k^T or, with a cap, cap tanh(scale q k^T). */
    float scale, cap;
    /* For generated rows with several segments: their results, and the number of finished blocks. */
    float *part;      /* [n_row, n_head, n_segment, head_dim + 2] */
    int32_t *arrived; /* [n_row, bundles of heads] */
    int n_segment;
};

/* Implemented by attend_decode.cu and attend_prefill.cu, for rows [0, n) and [first_row, n_row). */
void attend_decode_rows(const attention &a, int n);
void attend_prefill_rows(const attention &a, int first_row);

/* The lines of a block: those of rows [first_row, first_row + n_row), and heads [first_head, first_head +
 * heads) of each. */
struct lines {
    int first_row, n_row, first_head, heads, kv_head;
};

/* The online softmax so far, of a lane's two lines of a tile, g and g + 8. */
template <int STEPS> struct progress {
    float max[2], total[2];
    float sum[2 * STEPS][4]; /* tiles of 8 elements of the output, as mma.h has them */
};

/* Query heads are processed in bundles of at most a tile's lines; the bundles of one head of K and V are
 * consecutive. */
__device__ __forceinline__ lines lines_of(const attention &a, int bundle, int heads, int first_row, int n_row)
{
    const int bundles = (a.group + heads - 1) / heads, first = bundle % bundles * heads;
    lines l;
    l.first_row = first_row;
    l.n_row = n_row;
    l.kv_head = bundle / bundles;
    l.first_head = l.kv_head * a.group + first;
    l.heads = min(heads, a.group - first);
    return l;
}

__device__ __forceinline__ int row_of(const lines &l, int line)
{
    return l.first_row + line / l.heads;
}

__device__ __forceinline__ bool is_there(const lines &l, int line)
{
    return line < l.n_row * l.heads;
}

/* Writes an element of the output; all threads take the same branch of the three. */
__device__ __forceinline__ void put(const attention &a, int64_t at, float value)
{
    if (a.is == CAKE_F32)
        ((float *)a.out)[at] = value;
    else if (a.is == CAKE_BF16)
        from_float(((cake_bf16 *)a.out)[at], value);
    else
        from_float(((cake_f16 *)a.out)[at], value);
}

__device__ __forceinline__ int64_t place_of(const attention &a, const lines &l, int line)
{
    return ((int64_t)row_of(l, line) * a.n_head + l.first_head + line % l.heads) * a.kv.head_dim;
}

/* Queries of the lines from first_line on, rounded to the cache's precision, as fragments a [STEPS][32] of
 * four words. Missing lines are zeros. AT_ONCE: steps loaded together. */
template <int STEPS, int AT_ONCE>
__device__ void load_queries(uint4 *fragment, const attention &a, const lines &l, int first_line)
{
    const int lane = (int)threadIdx.x % CAKE_WARP, g = lane / 4, t = lane % 4;
    const bool there[2] = {is_there(l, first_line + g), is_there(l, first_line + g + 8)};
    const float *q[2];
#pragma unroll
    for (int i = 0; i < 2; i++)
        q[i] = a.q + place_of(a, l, there[i] ? first_line + g + 8 * i : 0) + 2 * t;
#pragma unroll(AT_ONCE)
    for (int step = 0; step < STEPS; step++) {
        uint32_t word[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float *from = q[i % 2] + 16 * step + 8 * (i / 2);
            const uint32_t pair = pair_of<cake_bf16>(from[0], from[1]);
            word[i] = there[i % 2] ? pair : 0;
        }
        fragment[step * CAKE_WARP + lane] = uint4{word[0], word[1], word[2], word[3]};
    }
}

template <int STEPS> __device__ __forceinline__ void begin(progress<STEPS> &p)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        p.max[i] = -INFINITY;
        p.total[i] = 0;
    }
#pragma unroll
    for (int i = 0; i < 2 * STEPS; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            p.sum[i][j] = 0;
}

/* The positions [first, last] of a part as bits; both ends may lie outside of the part. */
__device__ __forceinline__ uint32_t positions(int first, int last)
{
    first = max(first, 0);
    last = min(last, PART - 1);
    return first > last ? 0 : CAKE_ALL << first & CAKE_ALL >> (PART - 1 - last);
}

/* The positions of a part that a row sees, as bits. */
__device__ __forceinline__ uint32_t seen_by(const attention &a, const cake_row *row, int zero)
{
    return positions(cake_kv_first(&a.kv, row) - zero, row->pos - zero);
}

/* Turns scores [COLUMNS][4] into weights, and scales the earlier sums to the new largest score. ALL: both
 * lines of the lane see all positions; else sees [2] has the positions that each sees. */
template <bool ALL, int STEPS>
__device__ __forceinline__ void weigh(float (*score)[4], progress<STEPS> &p, const attention &a,
                                      const uint32_t *sees)
{
    const int t = (int)threadIdx.x % 4;
    const float scale = a.cap > 0 ? 1 : a.scale;
    float old[2];
    if (a.cap > 0)
#pragma unroll
        for (int i = 0; i < COLUMNS * 4; i++)
            score[i / 4][i % 4] = a.cap * tanhf(score[i / 4][i % 4] * a.scale);
#pragma unroll
    for (int line = 0; line < 2; line++) {
        const uint32_t seen = ALL ? 0 : sees[line] >> 8 * t;
        float most = -INFINITY, total = 0;
#pragma unroll
        for (int i = 0; i < COLUMNS; i++)
#pragma unroll
            for (int j = 0; j < 2; j++) {
                float &s = score[i][2 * line + j];
                if (!ALL)
                    s = seen >> (4 * j + i) & 1 ? s : -INFINITY;
                most = fmaxf(most, s);
            }
        most = fmaxf(most, __shfl_xor_sync(CAKE_ALL, most, 1));
        most = fmaxf(most, __shfl_xor_sync(CAKE_ALL, most, 2));
        most = fmaxf(p.max[line], most * scale); /* scaling keeps the order of scores */
        old[line] = most == p.max[line] ? 1 : exp2f(p.max[line] - most);
        const float from =
            most == -INFINITY ? 0 : most; /* a line that has seen nothing yet gets weights of 0 */
#pragma unroll
        for (int i = 0; i < COLUMNS; i++)
#pragma unroll
            for (int j = 0; j < 2; j++) {
                float &s = score[i][2 * line + j];
                s = exp2f(fused(s, scale, -from));
                total += s;
            }
        total += __shfl_xor_sync(CAKE_ALL, total, 1);
        total += __shfl_xor_sync(CAKE_ALL, total, 2);
        p.total[line] = fused(p.total[line], old[line], total);
        p.max[line] = most;
    }
    if (old[0] == 1 && old[1] == 1)
        return; /* the usual case: later scores seldom exceed the largest one */
#pragma unroll
    for (int i = 0; i < 2 * STEPS; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            p.sum[i][j] *= old[j / 2];
}

/* Weights as fragments a of the two steps of 16 positions, [2][4]. */
__device__ __forceinline__ void pack_weights(uint32_t (*a)[4], const float (*w)[4])
{
#pragma unroll
    for (int step = 0; step < 2; step++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int tile = 2 * (i / 2), at = step + 2 * (i % 2);
            a[step][i] = pair_of<cake_bf16>(w[tile][at], w[tile + 1][at]);
        }
}

/* An unseen value may be NaN or infinite, and 0 times that is not 0. Masks of the halves of a word that may
 * be used, for the pairs of positions in a lane's chunks of V: [step][low or high]. */
__device__ __forceinline__ void find_visible(uint32_t (*visible)[2], uint32_t good)
{
    const int t = (int)threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint32_t two = good >> (8 * t + 2 * i);
        visible[i / 2][i % 2] = (two & 1 ? 0xffff : 0) | (two & 2 ? 0xffff0000 : 0);
    }
}

/* The element of the output that is in tile `tile`, column 2 t + j. */
template <int STEPS> __device__ __forceinline__ int element_of(int tile, int t, int j)
{
    return STEPS % 2 && tile >= 2 * (STEPS - 1) ? 16 * (STEPS - 1) + 2 * (2 * t + j) + tile % 2
                                                : 32 * (tile / 4) + 4 * (2 * t + j) + tile % 4;
}

static inline unsigned groups(int64_t n, int of)
{
    return (unsigned)((n + of - 1) / of);
}

#endif
