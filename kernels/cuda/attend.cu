/* SPDX-License-Identifier: Apache-2.0
 *
 * In: queries, and K and V in pages. Out: what attention makes of them (kernels.h, attend).
 *
 * A warp computes up to 16 lines together, a line being a row and a query head of the group that shares a head of K
 * and V: of a prompt the lines of several rows, of a generated row its own. It walks a sequence's pages upwards, 64
 * positions at a time, with an online softmax (Milakov & Gimelshein 2018; in tiles as Dao 2023 has it). Prompts are
 * walked from the first position to the last by one warp. Of a generated row each segment of CAKE_SEGMENT positions
 * is walked by the warps of a block, page by page in turn, and what they have is joined in order; then segments are.
 *
 * Invariant: a line's bits depend on its own positions only. Positions that it does not see have the weight 0, and
 * leave sums and the largest score as they are, bit for bit.
 *
 * Pages of K hold pairs of elements of 64 positions side by side, pages of V pairs of positions (kernels.h). A lane
 * (g = lane / 4, t = lane % 4 of mma.h) loads 16 bytes: of K the pair of 4 neighbouring positions, which are column g of
 * four tiles; of V 4 neighbouring elements of a pair of positions, likewise. So position 32 h + 4 g + j is column g of
 * tile 4 h + j, the scores that a lane gets are those of positions 32 h + 8 t + j and + 4, and they are already where the
 * product with V takes them from.
 */
#include "kernels/cuda/layout.h"
#include "kernels/cuda/mma.h"

enum {
    LINES = 16,  /* of a warp */
    WARPS = 4,   /* of a block */
    HALVES = 2,  /* of a page, 32 positions */
    COLUMNS = 8, /* of a tile */
};

struct attention {
    float *out;     /* [n_tok, n_head, head_dim] */
    const float *q; /* [n_tok, n_head, head_dim] */
    cake_kv kv;
    const cake_row *rows;
    int n_tok, n_head, group;
    float scale, cap;
    float *
        part; /* workspace of generated rows with several segments: [n_row, n_head, n_segment, head_dim + 2] */
    int n_segment;
};

/* The lines of a warp: those of rows [first_row, first_row + n_row), and heads [first_head, first_head + heads) of each. */
struct lines {
    int first_row, n_row, first_head, heads, kv_head;
};

/* How far a lane's two lines, g and g + 8, have come. */
template <int STEPS> struct progress {
    float most[2], total[2];
    float sum[2 * STEPS][4]; /* tiles of 8 elements of the output, as mma.h has them */
};

__device__ __forceinline__ int row_of(const lines &l, int line)
{
    return l.first_row + line / l.heads;
}

__device__ __forceinline__ bool is_there(const lines &l, int line)
{
    return line < l.n_row * l.heads;
}

__device__ __forceinline__ int64_t place_of(const attention &a, const lines &l, int line)
{
    return ((int64_t)row_of(l, line) * a.n_head + l.first_head + line % l.heads) * a.kv.head_dim;
}

/* Queries of the warp's lines, rounded to the cache's precision, as fragments a [STEPS][32] of four words. Lines that
 * are not there are zeros. */
template <typename T, int STEPS>
__device__ void load_queries(uint4 *fragment, const attention &a, const lines &l)
{
    const int lane = (int)threadIdx.x % CAKE_WARP, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
        uint32_t word[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int line = g + 8 * (i % 2), at = 16 * step + 2 * t + 8 * (i / 2);
            const float *q = a.q + (is_there(l, line) ? place_of(a, l, line) : 0) + at;
            word[i] = is_there(l, line) ? pair_of<T>(q[0], q[1]) : 0;
        }
        fragment[step * CAKE_WARP + lane] = uint4{word[0], word[1], word[2], word[3]};
    }
    __syncwarp();
}

template <int STEPS> __device__ __forceinline__ void begin(progress<STEPS> &p)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        p.most[i] = -INFINITY;
        p.total[i] = 0;
    }
#pragma unroll
    for (int i = 0; i < 2 * STEPS; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            p.sum[i][j] = 0;
}

/* score [8][4]: of all lines and the page's positions. */
template <typename T, int STEPS>
__device__ __forceinline__ void multiply_keys(float score[8][4], const uint4 *fragment, const uint32_t *key)
{
    const int lane = (int)threadIdx.x % CAKE_WARP, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            score[i][j] = 0;
#pragma unroll(STEPS > 8 ? 1 : 4)
    for (int step = 0; step < STEPS; step++) {
        const uint4 q = fragment[step * CAKE_WARP + lane];
        const uint32_t a[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
        for (int h = 0; h < HALVES; h++) {
            const uint32_t *from = key + (8 * step + t) * CAKE_PAGE + 32 * h + 4 * g;
            uint4 low = *(const uint4 *)from, high = *(const uint4 *)(from + 4 * CAKE_PAGE);
            const uint32_t b[4][2] = {{low.x, high.x}, {low.y, high.y}, {low.z, high.z}, {low.w, high.w}};
#pragma unroll
            for (int j = 0; j < 4; j++)
                multiply_tile<T>(score[4 * h + j], a, b[j]);
        }
    }
}

/* Scores become weights; what was summed up before is made to fit. line 0 or 1 of the lane sees the positions [first,
 * last] of the page, or none. */
template <int STEPS>
__device__ __forceinline__ void weigh(float score[8][4], progress<STEPS> &p, const attention &a, int line,
                                      int first, int last)
{
    const int t = (int)threadIdx.x % 4;
    float most = p.most[line];
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 2; j++) {
            int at = 32 * (i / 4) + 8 * t + 4 * j + i % 4;
            float s = score[i][2 * line + j] * a.scale;
            if (a.cap > 0)
                s = a.cap * tanhf(s / a.cap);
            s = at >= first && at <= last ? s : -INFINITY;
            score[i][2 * line + j] = s;
            most = fmaxf(most, s);
        }
    most = fmaxf(most, __shfl_xor_sync(CAKE_ALL, most, 1));
    most = fmaxf(most, __shfl_xor_sync(CAKE_ALL, most, 2));
    float old = most == p.most[line] ? 1 : expf(p.most[line] - most), total = 0;
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 2; j++) {
            float &s = score[i][2 * line + j];
            s = s == -INFINITY ? 0 : expf(s - most);
            total += s;
        }
    total += __shfl_xor_sync(CAKE_ALL, total, 1);
    total += __shfl_xor_sync(CAKE_ALL, total, 2);
    p.total[line] = p.total[line] * old + total;
    p.most[line] = most;
#pragma unroll
    for (int i = 0; i < 2 * STEPS; i++) {
        p.sum[i][2 * line] *= old;
        p.sum[i][2 * line + 1] *= old;
    }
}

/* Positions as bits: [first, last], cut to those of a page. */
__device__ __forceinline__ uint64_t positions(int first, int last)
{
    first = max(first, 0);
    last = min(last, CAKE_PAGE - 1);
    return first > last ? 0 : ~(uint64_t)0 << first & ~(uint64_t)0 >> (CAKE_PAGE - 1 - last);
}

/* What nobody sees may be anything, NaN too, and 0 times that is not 0. */
__device__ __forceinline__ uint32_t visible(uint32_t pair, int at, uint64_t good)
{
    return (good >> at & 1 ? pair & 0xffff : 0) | (good >> at & 2 ? pair & 0xffff0000 : 0);
}

/* Positions of a page that have a value which is not finite. */
template <typename T, int STEPS> __device__ uint64_t find_broken(const uint32_t *value)
{
    uint32_t low = 0, high = 0;
    for (int pair = 0; pair < CAKE_PAGE / 2; pair++)
        for (int i = (int)threadIdx.x % CAKE_WARP; i < 16 * STEPS; i += CAKE_WARP) {
            uint32_t word = value[pair * 16 * STEPS + i];
            uint32_t bits =
                (fabsf(low_of<T>(word)) <= FLT_MAX ? 0 : 1) + (fabsf(high_of<T>(word)) <= FLT_MAX ? 0 : 2);
            if (pair < CAKE_PAGE / 4)
                low |= bits << 2 * pair;
            else
                high |= bits << (2 * pair - CAKE_PAGE / 2);
        }
    for (int flip = CAKE_WARP / 2; flip; flip /= 2) {
        low |= __shfl_xor_sync(CAKE_ALL, low, flip);
        high |= __shfl_xor_sync(CAKE_ALL, high, flip);
    }
    return (uint64_t)high << 32 | low;
}

template <typename T, int STEPS>
__device__ __forceinline__ void multiply_values(progress<STEPS> &p, const float score[8][4],
                                                const uint32_t *value, uint64_t good)
{
    const int lane = (int)threadIdx.x % CAKE_WARP, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int h = 0; h < HALVES; h++)
#pragma unroll
        for (int step = 0; step < 2; step++) {
            const float(*w)[4] = score + 4 * h;
            const uint32_t a[4] = {
                pair_of<T>(w[0][step], w[1][step]), pair_of<T>(w[0][2 + step], w[1][2 + step]),
                pair_of<T>(w[2][step], w[3][step]), pair_of<T>(w[2][2 + step], w[3][2 + step])};
            const int at = 2 * (16 * h + 4 * t + 2 * step);
            const uint32_t *from = value + at * 8 * STEPS;
#pragma unroll
            for (int m = 0; m < STEPS / 2; m++) {
                uint4 low = *(const uint4 *)(from + 32 * m + 4 * g),
                      high = *(const uint4 *)(from + 16 * STEPS + 32 * m + 4 * g);
                const uint32_t b[4][2] = {{low.x, high.x}, {low.y, high.y}, {low.z, high.z}, {low.w, high.w}};
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    const uint32_t v[2] = {visible(b[j][0], at, good), visible(b[j][1], at + 2, good)};
                    multiply_tile<T>(p.sum[4 * m + j], a, v);
                }
            }
            if (STEPS % 2) { /* 16 elements are left: two tiles, of 2 neighbouring elements */
                const uint32_t *rest = from + 16 * (STEPS - 1) + 2 * g;
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    const uint32_t v[2] = {visible(rest[j], at, good),
                                           visible(rest[16 * STEPS + j], at + 2, good)};
                    multiply_tile<T>(p.sum[2 * (STEPS - 1) + j], a, v);
                }
            }
        }
}

/* Which element of the output lies in tile `tile`, column 2 t + j. */
template <int STEPS> __device__ __forceinline__ int element_of(int tile, int t, int j)
{
    return STEPS % 2 && tile >= 2 * (STEPS - 1) ? 16 * (STEPS - 1) + 2 * (2 * t + j) + tile % 2
                                                : 32 * (tile / 4) + 4 * (2 * t + j) + tile % 4;
}

/* Walks what rows `top` and `bottom`, and those between them, see of their slot, within [first, last]: its `turn`th page of
 * each `stride`, for those of the warp's lines that are such rows. */
template <typename T, int STEPS>
__device__ void walk(progress<STEPS> &p, const uint4 *fragment, const attention &a, const lines &l,
                     const cake_row *top, const cake_row *bottom, int first, int last, int turn, int stride)
{
    const int g = (int)threadIdx.x % CAKE_WARP / 4;
    int sees[2], begins[2]; /* the last and the first position that a line sees */
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const cake_row *row = &a.rows[is_there(l, g + 8 * i) ? row_of(l, g + 8 * i) : l.first_row];
        bool walks = is_there(l, g + 8 * i) && row >= top && row <= bottom;
        sees[i] = walks ? min(row->pos, last) : -1;
        begins[i] = cake_kv_first(&a.kv, row);
    }
    for (int page = first / CAKE_PAGE + turn; page <= last / CAKE_PAGE; page += stride) {
        const size_t at = cake_kv_page(&a.kv, top->slot, page * CAKE_PAGE, l.kv_head);
        const uint32_t *key = (const uint32_t *)((const T *)a.kv.k + at),
                       *value = (const uint32_t *)((const T *)a.kv.v + at);
        const int zero = page * CAKE_PAGE;
        uint64_t good = positions(first - zero, last - zero), broken = 0;
        /* A value that only some of the lines see must not harm the others; those that see it are not finite then. */
        if (top != bottom && positions(cake_kv_first(&a.kv, bottom) - zero, top->pos - zero) != good)
            broken = good & find_broken<T, STEPS>(value);
        float score[8][4];
        multiply_keys<T, STEPS>(score, fragment, key);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            weigh<STEPS>(score, p, a, i, begins[i] - zero, sees[i] - zero);
            if (broken & positions(begins[i] - zero, sees[i] - zero))
                p.total[i] = NAN;
        }
        multiply_values<T, STEPS>(p, score, value, good & ~broken);
    }
}

/* A warp for the rows of a prompt: grid: groups of WARPS * rows of a warp, groups of heads of each head of K and V. */
template <typename T, int STEPS>
__global__ void __launch_bounds__(WARPS *CAKE_WARP, 2) attend_prompt(attention a, int first_row, int heads)
{
    begin_kernel();
    __shared__ uint4 fragment[WARPS][STEPS * CAKE_WARP];
    const int warp = (int)threadIdx.x / CAKE_WARP, lane = (int)threadIdx.x % CAKE_WARP, g = lane / 4,
              t = lane % 4;
    const int bundles = (a.group + heads - 1) / heads, bundle = (int)blockIdx.y % bundles;
    lines l;
    l.kv_head = (int)blockIdx.y / bundles;
    l.first_head = l.kv_head * a.group + bundle * heads;
    l.heads = min(heads, a.group - bundle * heads);
    const int rows = LINES / heads;
    l.first_row = first_row + ((int)blockIdx.x * WARPS + warp) * rows;
    l.n_row = min(rows, a.n_tok - l.first_row);
    if (l.n_row <= 0)
        return; /* the whole warp */
    load_queries<T, STEPS>(fragment[warp], a, l);
    progress<STEPS> p;
    begin(p);
    for (int i = 0, next; i < l.n_row;
         i = next) { /* rows of one sequence stand together, positions upwards */
        const cake_row *row = &a.rows[l.first_row + i];
        for (next = i + 1; next < l.n_row && a.rows[l.first_row + next].slot == row->slot; next++)
            ;
        const cake_row *bottom = &a.rows[l.first_row + next - 1];
        walk<T, STEPS>(p, fragment[warp], a, l, row, bottom, cake_kv_first(&a.kv, row), bottom->pos, 0, 1);
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
        if (is_there(l, g + 8 * i)) {
            float *out = a.out + place_of(a, l, g + 8 * i);
#pragma unroll
            for (int tile = 0; tile < 2 * STEPS; tile++)
#pragma unroll
                for (int j = 0; j < 2; j++)
                    out[element_of<STEPS>(tile, t, j)] = p.sum[tile][2 * i + j] / p.total[i];
        }
}

/* A block for a segment of a generated row. grid: rows, bundles of heads, segments. */
template <typename T, int STEPS>
__global__ void __launch_bounds__(WARPS *CAKE_WARP, 2) attend_generated(attention a, int heads)
{
    begin_kernel();
    __shared__ uint4 fragment[STEPS * CAKE_WARP];
    __shared__ float most[WARPS][LINES], total[WARPS][LINES], sum[LINES][16 * STEPS + 1];
    const int warp = (int)threadIdx.x / CAKE_WARP, lane = (int)threadIdx.x % CAKE_WARP, g = lane / 4,
              t = lane % 4;
    const int bundles = (a.group + heads - 1) / heads, bundle = (int)blockIdx.y % bundles;
    const cake_row *row = &a.rows[blockIdx.x];
    const int begun = cake_kv_first(&a.kv, row), segment = begun / CAKE_SEGMENT + (int)blockIdx.z;
    const int first = max(begun, segment * CAKE_SEGMENT),
              last = min(row->pos, segment * CAKE_SEGMENT + CAKE_SEGMENT - 1);
    if (first > last)
        return; /* the whole block */
    const bool alone = row->pos / CAKE_SEGMENT == begun / CAKE_SEGMENT;
    lines l;
    l.kv_head = (int)blockIdx.y / bundles;
    l.first_head = l.kv_head * a.group + bundle * heads;
    l.heads = min(heads, a.group - bundle * heads);
    l.first_row = (int)blockIdx.x;
    l.n_row = 1;
    if (warp == 0)
        load_queries<T, STEPS>(fragment, a, l);
    __syncthreads();
    progress<STEPS> p;
    begin(p);
    walk<T, STEPS>(p, fragment, a, l, row, row, first, last, warp, WARPS);

#pragma unroll
    for (int i = 0; i < 2; i++)
        if (t == 0) {
            most[warp][g + 8 * i] = p.most[i];
            total[warp][g + 8 * i] = p.total[i];
        }
    __syncthreads();
    for (int w = 0; w < WARPS; w++) { /* warps add what they have, one after the other */
        if (w == warp)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                int line = g + 8 * i;
                float all = most[0][line];
                for (int v = 1; v < WARPS; v++)
                    all = fmaxf(all, most[v][line]);
                float share = p.most[i] == -INFINITY ? 0 : expf(p.most[i] - all);
#pragma unroll
                for (int tile = 0; tile < 2 * STEPS; tile++)
#pragma unroll
                    for (int j = 0; j < 2; j++) {
                        float &to = sum[line][element_of<STEPS>(tile, t, j)];
                        to = (w ? to : 0) + p.sum[tile][2 * i + j] * share;
                    }
            }
        __syncthreads();
    }
    for (int line = 0; line < l.heads; line++) {
        float all = most[0][line], whole = 0;
        for (int v = 1; v < WARPS; v++)
            all = fmaxf(all, most[v][line]);
        for (int v = 0; v < WARPS; v++)
            whole += most[v][line] == -INFINITY ? 0 : total[v][line] * expf(most[v][line] - all);
        int64_t item = (int64_t)blockIdx.x * a.n_head + l.first_head + line;
        float *part = a.part + (item * a.n_segment + blockIdx.z) * (16 * STEPS + 2);
        for (int j = (int)threadIdx.x; j < 16 * STEPS; j += WARPS * CAKE_WARP)
            if (alone)
                a.out[item * a.kv.head_dim + j] = sum[line][j] / whole;
            else
                part[2 + j] = sum[line][j];
        if (threadIdx.x == 0 && !alone) {
            part[0] = all;
            part[1] = whole;
        }
    }
}

/* Joins the segments of rows that have several, in order: a block a row and head. */
__global__ void join_segments(attention a)
{
    begin_kernel();
    const int dim = a.kv.head_dim;
    const int64_t item = blockIdx.x;
    const cake_row *row = &a.rows[item / a.n_head];
    const int n = row->pos / CAKE_SEGMENT - cake_kv_first(&a.kv, row) / CAKE_SEGMENT + 1;
    if (n == 1)
        return;
    const float *part = a.part + item * a.n_segment * (dim + 2);
    for (int j = (int)threadIdx.x; j < dim; j += (int)blockDim.x) {
        float most = part[0], total = part[1], sum = part[2 + j];
        for (int i = 1; i < n; i++) {
            const float *next = part + (int64_t)i * (dim + 2);
            float both = fmaxf(most, next[0]), old = expf(most - both), add = expf(next[0] - both);
            sum = sum * old + next[2 + j] * add;
            total = total * old + next[1] * add;
            most = both;
        }
        a.out[item * dim + j] = sum / total;
    }
}

/* For heads and caches that tile products do not take: a warp a row and head, lanes along positions. */
template <typename T> __global__ void attend_any(attention a)
{
    begin_kernel();
    CAKE_SHARED(float, sum); /* [head_dim] */
    const int lane = (int)threadIdx.x, dim = a.kv.head_dim, n_kv = a.kv.n_kv;
    const int64_t item = blockIdx.x;
    const cake_row *row = &a.rows[item / a.n_head];
    const int head = (int)(item % a.n_head) / (a.n_head / n_kv);
    const float *q = a.q + item * dim;
    float most = -INFINITY, total = 0;
    for (int j = lane; j < dim; j += CAKE_WARP)
        sum[j] = 0;
    const int first = cake_kv_first(&a.kv, row);
    for (int from = first / CAKE_WARP * CAKE_WARP; from <= row->pos; from += CAKE_WARP) {
        const int pos = from + lane, n = min(row->pos - from + 1, (int)CAKE_WARP);
        const size_t at = cake_kv_page(&a.kv, row->slot, from, head);
        float score = 0;
        if (pos >= first && pos <= row->pos)
            for (int j = 0; j < dim; j++)
                score += q[j] * to_float(((const T *)a.kv.k)[at + cake_kv_key(&a.kv, pos % CAKE_PAGE, j)]);
        score *= a.scale;
        if (a.cap > 0)
            score = a.cap * tanhf(score / a.cap);
        if (pos < first || pos > row->pos)
            score = -INFINITY;
        float now = fmaxf(most, score);
        for (int flip = CAKE_WARP / 2; flip; flip /= 2)
            now = fmaxf(now, __shfl_xor_sync(CAKE_ALL, now, flip));
        float old = now == most ? 1 : expf(most - now);
        float weight = score == -INFINITY ? 0 : expf(score - now);
        total = total * old + warp_sum(weight);
        most = now;
        for (int j = lane; j < dim; j += CAKE_WARP)
            sum[j] *= old;
        for (int i = 0; i < n; i++) {
            float w = __shfl_sync(CAKE_ALL, weight, i);
            if (from + i < first)
                continue; /* anything may stand there */
            for (int j = lane; j < dim; j += CAKE_WARP)
                sum[j] +=
                    w * to_float(((const T *)a.kv.v)[at + cake_kv_value(&a.kv, (from + i) % CAKE_PAGE, j)]);
        }
    }
    for (int j = lane; j < dim; j += CAKE_WARP)
        a.out[item * dim + j] = sum[j] / total;
}

static unsigned groups(int64_t n, int of)
{
    return (unsigned)((n + of - 1) / of);
}

template <int STEPS> static void launch_tiles(attention a, int n_generated)
{
    const int heads = min(a.group, (int)LINES), bundles = (int)groups(a.group, heads) * a.kv.n_kv;
    if (n_generated) {
        CAKE_LAUNCH((attend_generated<cake_bf16, STEPS>),
                    dim3((unsigned)n_generated, (unsigned)bundles, (unsigned)a.n_segment),
                    dim3(WARPS * CAKE_WARP), 0, a, heads);
        if (a.n_segment > 1)
            CAKE_LAUNCH(join_segments, dim3((unsigned)n_generated * (unsigned)a.n_head), dim3(64), 0, a);
    }
    if (n_generated < a.n_tok)
        CAKE_LAUNCH((attend_prompt<cake_bf16, STEPS>),
                    dim3(groups(a.n_tok - n_generated, LINES / heads * WARPS), (unsigned)bundles),
                    dim3(WARPS * CAKE_WARP), 0, a, n_generated, heads);
}

size_t cake_cuda_attend_part(int n_head, int head_dim, int n_segment)
{
    return n_segment > 1 ? (size_t)n_head * (size_t)n_segment * ((size_t)head_dim + 2) * sizeof(float) : 0;
}

void cake_cuda_attend(float *out, const float *q, const cake_kv *kv, const cake_row *rows, int n_generated,
                      int n_tok, int n_head, float scale, float cap, float *part, int n_segment)
{
    attention a = {out, q, *kv, rows, n_tok, n_head, n_head / kv->n_kv, scale, cap, part, n_segment};
    const dim3 grid((unsigned)n_tok * (unsigned)n_head);
    const size_t sums = (size_t)kv->head_dim * sizeof(float);
    if (kv->dtype == CAKE_BF16 && cake_cuda_tiles(kv->head_dim))
        switch (kv->head_dim / 16) {
        case 4:
            return launch_tiles<4>(a, n_generated);
        case 5:
            return launch_tiles<5>(a, n_generated);
        case 6:
            return launch_tiles<6>(a, n_generated);
        case 8:
            return launch_tiles<8>(a, n_generated);
        default:
            return launch_tiles<16>(a, n_generated);
        }
    if (kv->dtype == CAKE_F32)
        CAKE_LAUNCH(attend_any<float>, grid, dim3(CAKE_WARP), sums, a);
    else if (kv->dtype == CAKE_BF16)
        CAKE_LAUNCH(attend_any<cake_bf16>, grid, dim3(CAKE_WARP), sums, a);
    else
        CAKE_LAUNCH(attend_any<cake_f16>, grid, dim3(CAKE_WARP), sums, a);
}
