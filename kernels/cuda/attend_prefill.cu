/* SPDX-License-Identifier: Apache-2.0
 *
 * In: queries of prompt rows, and K and V in pages. Out: attention (attend.h has the invariant).
 *
 * A block has 128 lines (of heads of 256 elements 64), of as many rows as that makes, and goes through each
 * of their sequences from the first position that any of its lines sees to the last. Its warps share their
 * reads: a part of K and one of V are in shared memory; V loads while scores are computed, the next K while
 * values are added (the order of FlashAttention-2, Dao 2023). Warps without lines in a sequence, or none that
 * sees the part, only help to copy. The two tiles of a warp take the same fragments of K and V: a tile
 * product of heads of 128 then needs 192 bytes of shared memory and 32 of the second cache. A multiprocessor
 * of an H200 has 128 and about 23 of them a clock, 0.7 products, and its tensor cores are rated at one a
 * clock. (Laid out for, not measured.)
 *
 * Chunks of 16 bytes in shared memory: a quarter of a warp, which reads at a time, has all four t and two
 * neighbouring g, t is the row and g the chunk, and all rows that meet begin in the same bank. So chunk c of
 * row r stands where c ^ 2 (r % 4) would of K, whose rows t are neighbours, and c ^ 2 (r / 4) of V, where
 * they are four apart: the eight lanes then read chunks that are different modulo 8, which is all banks once.
 */
#include "kernels/cuda/attend.h"

template <int STEPS> struct block_of {
    enum {
        TILES = STEPS > 8 ? 1 : 2, /* of a warp: more sums would not fit the registers */
        HIGH = WARPS * TILES * LINES,
        QUERIES = WARPS * TILES * STEPS * CAKE_WARP, /* chunks (16 bytes) of shared memory for queries */
        KEYS = 8 * STEPS * (K_ROW / 2),
        V_ROW = 4 * STEPS,
        VALUES = PAIRS * V_ROW
    };
};

/* Rows [row, end) of a block, which are all of one sequence. */
struct row_range {
    int row, end;
};

/* Positions that a warp's lines of a row range see: some line sees each of positions [first, last], all lines
 * see [all_first, all_last]. last < 0: the warp has no line here; all_last < 0: some of its lines are of
 * other sequences. */
struct view {
    int first, last, all_first, all_last;
};

/* The row range that begins at a row: consecutive rows of a sequence, without gaps in their positions. */
__device__ __forceinline__ row_range begin_at(const attention &a, const lines &l, int row)
{
    const int end = l.first_row + l.n_row;
    const cake_row *top = &a.rows[row], *bottom = &a.rows[end - 1];
    row_range s = {row, row + 1};
    if (bottom->slot == top->slot && bottom->pos - top->pos == end - 1 - row)
        s.end = end;
    while (s.end < end && a.rows[s.end].slot == top->slot)
        s.end++;
    return s;
}

__device__ __forceinline__ view look(const attention &a, const lines &l, const row_range &s, int first_line,
                                     int n_line)
{
    view v = {0, -1, 0, -1};
    if (!is_there(l, first_line))
        return v;
    const int first = row_of(l, first_line),
              last = min(row_of(l, first_line + n_line - 1), l.first_row + l.n_row - 1);
    const int from = max(first, s.row), to = min(last, s.end - 1);
    if (from > to)
        return v;
    v.first = cake_kv_first(&a.kv, &a.rows[from]);
    v.last = a.rows[to].pos;
    if (from == first && to == last) {
        v.all_first = cake_kv_first(&a.kv, &a.rows[to]);
        v.all_last = a.rows[from].pos;
    }
    return v;
}

/* The start of a part of K or V. half: distance in chunks from the first part of a page to the second one:
 * half of the page in V, half of its first row in K. */
__device__ __forceinline__ const uint4 *find_part(const void *from, const attention &a, int slot, int kv_head,
                                                  int zero, int half)
{
    const size_t at = cake_kv_page(&a.kv, slot, zero, kv_head);
    return (const uint4 *)((const uint16_t *)from + at) + zero / PART % 2 * half;
}

template <int STEPS> __device__ __forceinline__ void bring_keys(uint4 *to, const uint4 *from)
{
    enum { WIDE = K_ROW / 2, KEYS = block_of<STEPS>::KEYS, THREADS = WARPS * CAKE_WARP };
#pragma unroll
    for (int n = 0; n < (KEYS + THREADS - 1) / THREADS; n++) {
        const int i = n * THREADS + (int)threadIdx.x, row = i / WIDE, chunk = i % WIDE;
        if (i < KEYS)
            copy_ahead(&to[row * WIDE + (chunk ^ 2 * (row % 4))], &from[row * K_ROW + chunk]);
    }
    end_copies();
}

/* Copies a part of V to shared memory. Each warp copies four rows, whose chunks are swizzled alike. The
 * chunks of 16 elements that remain after whole groups of 32 are not swizzled. */
template <int STEPS> __device__ __forceinline__ void bring_values(uint4 *to, const uint4 *from)
{
    enum { WIDE = block_of<STEPS>::V_ROW, ROWS = PAIRS / WARPS };
    const int warp = (int)threadIdx.x / CAKE_WARP, lane = (int)threadIdx.x % CAKE_WARP;
    from += warp * ROWS * WIDE;
    to += warp * ROWS * WIDE;
#pragma unroll
    for (int n = 0; n < (ROWS * WIDE + CAKE_WARP - 1) / CAKE_WARP; n++) {
        const int i = n * CAKE_WARP + lane, row = i / WIDE, chunk = i % WIDE;
        if (i < ROWS * WIDE)
            copy_ahead(&to[row * WIDE + (chunk < STEPS / 2 * 8 ? chunk ^ 2 * warp : chunk)], &from[i]);
    }
    end_copies();
}

/* Adds the scores of the warp's lines at the part's positions, which are zero before. */
template <int STEPS, int TILES>
__device__ __forceinline__ void multiply_keys(float (*score)[COLUMNS][4], const uint4 *query,
                                              const uint4 *key)
{
    const int lane = (int)threadIdx.x % CAKE_WARP, g = lane / 4, t = lane % 4;
    const uint4 *from = key + t * (K_ROW / 2) + (g ^ 2 * t);
#pragma unroll(STEPS > 6 ? 4 : STEPS)
    for (int step = 0; step < STEPS; step++) {
        const uint4 low = from[8 * step * (K_ROW / 2)], high = from[(8 * step + 4) * (K_ROW / 2)];
        const uint32_t b[4][2] = {{low.x, high.x}, {low.y, high.y}, {low.z, high.z}, {low.w, high.w}};
#pragma unroll
        for (int tile = 0; tile < TILES; tile++) {
            const uint4 q = query[(tile * STEPS + step) * CAKE_WARP + lane];
            const uint32_t a[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
            for (int j = 0; j < COLUMNS; j++)
                multiply_tile<cake_bf16>(score[tile][j], a, b[j]);
        }
    }
}

template <bool ALL, int STEPS, int TILES>
__device__ __forceinline__ void multiply_values(progress<STEPS> *p, const uint32_t (*weight)[2][4],
                                                const uint4 *value, const uint32_t (*visible)[2])
{
    const int lane = (int)threadIdx.x % CAKE_WARP, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int step = 0; step < 2; step++) {
        const uint4 *low = value + (4 * t + 2 * step) * block_of<STEPS>::V_ROW,
                    *high = low + block_of<STEPS>::V_ROW;
        auto add = [&](int to, uint32_t x, uint32_t y) {
            const uint32_t b[2] = {ALL ? x : x & visible[step][0], ALL ? y : y & visible[step][1]};
#pragma unroll
            for (int tile = 0; tile < TILES; tile++)
                multiply_tile<cake_bf16>(p[tile].sum[to], weight[tile][step], b);
        };
#pragma unroll
        for (int m = 0; m < STEPS / 2; m++) {
            const uint4 x = low[8 * m + (g ^ 2 * t)], y = high[8 * m + (g ^ 2 * t)];
            add(4 * m, x.x, y.x);
            add(4 * m + 1, x.y, y.y);
            add(4 * m + 2, x.z, y.z);
            add(4 * m + 3, x.w, y.w);
        }
        if (STEPS % 2) { /* 16 elements are left: two tiles, of 2 neighbouring elements */
            const uint32_t *x = (const uint32_t *)(low + STEPS / 2 * 8) + 2 * g,
                           *y = (const uint32_t *)(high + STEPS / 2 * 8) + 2 * g;
            add(2 * (STEPS - 1), x[0], y[0]);
            add(2 * (STEPS - 1) + 1, x[1], y[1]);
        }
    }
}

/* The positions of a part, as bits, whose value has an element that is not finite. */
template <int STEPS> __device__ __forceinline__ uint32_t find_broken(const uint4 *value)
{
    const uint32_t odd = 0x7f80; /* the exponent of an infinity or NaN in BF16 */
    uint32_t bits = 0;
#pragma unroll 1
    for (int pair = 0; pair < PAIRS; pair++) {
        uint32_t two = 0;
        for (int i = (int)threadIdx.x % CAKE_WARP; i < block_of<STEPS>::V_ROW; i += CAKE_WARP) {
            const uint4 four = value[pair * block_of<STEPS>::V_ROW + i];
            const uint32_t word[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
            for (int j = 0; j < 4; j++)
                two |= ((word[j] & odd) == odd ? 1 : 0) | ((word[j] >> 16 & odd) == odd ? 2 : 0);
        }
        bits |= two << 2 * pair;
    }
    for (int flip = CAKE_WARP / 2; flip; flip /= 2)
        bits |= __shfl_xor_sync(CAKE_ALL, bits, flip);
    return bits;
}

/* Turns scores into weights and adds values, for a part that all lines of the warp see. */
template <int STEPS, int TILES>
__device__ __forceinline__ void take_all(progress<STEPS> *p, float (*score)[COLUMNS][4], const attention &a,
                                         const uint4 *value)
{
    uint32_t weight[TILES][2][4];
#pragma unroll
    for (int tile = 0; tile < TILES; tile++) {
        weigh<true>(score[tile], p[tile], a, nullptr);
        pack_weights(weight[tile], score[tile]);
    }
    multiply_values<true, STEPS, TILES>(p, weight, value, nullptr);
}

/* As take_all, for a part that some lines see only partly. */
template <int STEPS, int TILES>
__device__ __forceinline__ void take_some(progress<STEPS> *p, float (*score)[COLUMNS][4], const attention &a,
                                          const lines &l, const row_range &s, const view &v, int zero,
                                          const uint4 *value, int first_line)
{
    const int g = (int)threadIdx.x % CAKE_WARP / 4;
    uint32_t good = positions(v.first - zero, v.last - zero), broken = 0;
    /* A value that is not finite must not affect lines that do not see it: it is left out, and lines that see
     * it get NaN. */
    if (positions(v.all_first - zero, v.all_last - zero) != good)
        broken = good & find_broken<STEPS>(value);
    uint32_t weight[TILES][2][4], visible[2][2];
#pragma unroll
    for (int tile = 0; tile < TILES; tile++) {
        uint32_t sees[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int line = first_line + LINES * tile + g + 8 * i,
                      row = is_there(l, line) ? row_of(l, line) : -1;
            sees[i] = row >= s.row && row < s.end ? seen_by(a, &a.rows[row], zero) : 0;
        }
        weigh<false>(score[tile], p[tile], a, sees);
#pragma unroll
        for (int i = 0; i < 2; i++)
            if (broken & sees[i])
                p[tile].total[i] = NAN;
        pack_weights(weight[tile], score[tile]);
    }
    find_visible(visible, good & ~broken);
    multiply_values<false, STEPS, TILES>(p, weight, value, visible);
}

template <int STEPS>
__device__ __forceinline__ void put(const progress<STEPS> &p, const attention &a, const lines &l,
                                    int first_line)
{
    const int lane = (int)threadIdx.x % CAKE_WARP, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < 2; i++)
        if (is_there(l, first_line + g + 8 * i)) {
            float *out = (float *)a.out + place_of(a, l, first_line + g + 8 * i);
            const float share = 1 / p.total[i];
#pragma unroll
            for (int tile = 0; tile < 2 * STEPS; tile++)
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    const int at = element_of<STEPS>(tile, t, j);
                    auto sum = [&](int next) {
                        return __float_as_uint(p.sum[tile + next][2 * i + j] * share);
                    };
                    if (tile / 4 == STEPS / 2)
                        out[at] = p.sum[tile][2 * i + j] * share;
                    else if (tile % 4 == 0) /* four tiles have neighbours */
                        *(uint4 *)(out + at) = uint4{sum(0), sum(1), sum(2), sum(3)};
                }
        }
}

/* grid: groups of rows, those that see most first; bundles of heads. */
template <int STEPS>
__global__ void __launch_bounds__(WARPS *CAKE_WARP, 2) attend_prefill(attention a, int first_row, int heads)
{
    begin_kernel();
    enum { TILES = block_of<STEPS>::TILES };
    CAKE_SHARED(uint4, memory);
    uint4 *key = memory + block_of<STEPS>::QUERIES, *value = key + block_of<STEPS>::KEYS;
    const int warp = (int)threadIdx.x / CAKE_WARP, first_line = warp * TILES * LINES,
              rows = block_of<STEPS>::HIGH / heads;
    const int first = first_row + (int)(gridDim.x - 1 - blockIdx.x) * rows;
    const lines l = lines_of(a, (int)blockIdx.y, heads, first, min(rows, a.n_row - first));
    uint4 *query = memory + warp * TILES * STEPS * CAKE_WARP;
    progress<STEPS> p[TILES];
#pragma unroll
    for (int tile = 0; tile < TILES; tile++)
        begin(p[tile]);
    for (row_range s = {0, first}; s.end < first + l.n_row;) {
        s = begin_at(a, l, s.end);
        const int slot = a.rows[s.row].slot, last = a.rows[s.end - 1].pos;
        int zero = cake_kv_first(&a.kv, &a.rows[s.row]) / PART * PART; /* the part's first position */
        bring_keys<STEPS>(key, find_part(a.kv.k, a, slot, l.kv_head, zero, K_ROW / 2));
        if (s.row == first)
#pragma unroll
            for (int tile = 0; tile < TILES; tile++)
                load_queries<STEPS, 2>(query + tile * STEPS * CAKE_WARP, a, l, first_line + LINES * tile);
        for (; zero <= last; zero += PART) {
            const view v = look(a, l, s, first_line, TILES * LINES);
            const bool some = v.first < zero + PART && v.last >= zero,
                       all = v.all_first <= zero && v.all_last >= zero + PART - 1;
            float score[TILES][COLUMNS][4] = {};
            await_copies<0>();
            __syncthreads(); /* keys have arrived, and no warp reads values */
            bring_values<STEPS>(value, find_part(a.kv.v, a, slot, l.kv_head, zero, block_of<STEPS>::VALUES));
            if (some)
                multiply_keys<STEPS, TILES>(score, query, key);
            await_copies<0>();
            __syncthreads(); /* values have arrived, and no warp reads keys */
            if (zero + PART <= last)
                bring_keys<STEPS>(key, find_part(a.kv.k, a, slot, l.kv_head, zero + PART, K_ROW / 2));
            if (all)
                take_all<STEPS, TILES>(p, score, a, value);
            else if (some)
                take_some<STEPS, TILES>(p, score, a, l, s, v, zero, value, first_line);
        }
    }
#pragma unroll
    for (int tile = 0; tile < TILES; tile++)
        put(p[tile], a, l, first_line + LINES * tile);
}

template <int STEPS> static void launch(const attention &a, int first_row)
{
    const int heads = min(a.group, (int)LINES);
    const unsigned blocks = groups(a.n_row - first_row, block_of<STEPS>::HIGH / heads),
                   bundles = groups(a.group, heads) * (unsigned)a.kv.n_kv;
    const size_t chunks = block_of<STEPS>::QUERIES + block_of<STEPS>::KEYS + block_of<STEPS>::VALUES;
    CAKE_LAUNCH(attend_prefill<STEPS>, dim3(blocks, bundles), dim3(WARPS * CAKE_WARP), chunks * sizeof(uint4),
                a, first_row, heads);
}

void attend_prefill_rows(const attention &a, int first_row)
{
    switch (a.kv.head_dim / 16) {
    case 4:
        return launch<4>(a, first_row);
    case 5:
        return launch<5>(a, first_row);
    case 6:
        return launch<6>(a, first_row);
    case 8:
        return launch<8>(a, first_row);
    default:
        return launch<16>(a, first_row);
    }
}
