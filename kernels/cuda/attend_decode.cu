/* SPDX-License-Identifier: Apache-2.0
 *
 * In: queries of generated rows, and K and V in pages. Out: attention (attend.h has the invariant).
 *
 * A block computes a segment of a row (layout.h has its length) for the heads that share a head of K and V;
 * its warps take parts in turn, and their results are joined in order; the block that ends last joins the
 * segments.
 *
 * The speed depends on the number of bytes in flight: at 4.8 TB/s and a latency of about 1 us an H200 needs
 * 36 KB on each of its 132 multiprocessors. Every warp has a ring of four stages of 2 KB in shared memory,
 * three of which are in flight while it works, across the ends of parts: 24 KB a block of four warps,
 * whatever the size of heads, and at least two blocks on a multiprocessor. (Laid out for, not measured.)
 *
 * A lane copies the chunks that only it reads, so within the ring no lane waits for others.
 */
#include "kernels/cuda/attend.h"

enum { STAGES = 4, CHUNKS = 4 /* 16-byte chunks that a lane copies in a stage */ };

/* The stages of a part: two steps of 16 elements of K each, then 32 elements of V each, all of its
 * positions. */
template <int STEPS> struct stages_of {
    enum { KEYS = (STEPS + 1) / 2, ALL = 2 * KEYS };
};

/* Where a lane's first chunks of a part are. */
struct source {
    const uint4 *key, *value;
};

template <int STEPS>
__device__ __forceinline__ source find_part(const attention &a, const lines &l, int slot, int part)
{
    const int lane = (int)threadIdx.x % CAKE_WARP, g = lane / 4, t = lane % 4;
    const size_t at = cake_kv_page(&a.kv, slot, part * PART, l.kv_head);
    return source{(const uint4 *)((const uint16_t *)a.kv.k + at) + t * K_ROW + part % 2 * (K_ROW / 2) + g,
                  (const uint4 *)((const uint16_t *)a.kv.v + at) + (part % 2 * PAIRS + 4 * t) * (4 * STEPS) +
                      g};
}

/* Begins to copy stage `stage` of a part to the lane's places `to`. Where 16 elements remain after
 * whole groups of 32, two lanes use half a chunk each, and both copy it. */
template <int STEPS> __device__ __forceinline__ void bring(uint4 *to, const source &from, int stage)
{
    const int g = (int)threadIdx.x % CAKE_WARP / 4, m = stage - stages_of<STEPS>::KEYS;
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
        const int step = 2 * stage + c / 2;
        if (stage >= stages_of<STEPS>::KEYS)
            copy_ahead(&to[c * CAKE_WARP],
                       from.value + c * (4 * STEPS) + 8 * m - (m < STEPS / 2 ? 0 : (g + 1) / 2));
        else if (step < STEPS)
            copy_ahead(&to[c * CAKE_WARP], from.key + (8 * step + 4 * (c % 2)) * K_ROW);
    }
}

/* A lane's progress through its warp's parts: its n-th stage is at place n % STAGES of the ring. */
template <int STEPS> struct walk {
    uint4 *ring; /* the lane's first place */
    source now, next;
    bool more; /* there is a next part */
    int turn;  /* the number n of the current part's first stage */

    __device__ __forceinline__ uint4 *place(int stage) const
    {
        return ring + (turn + stage) % STAGES * (CHUNKS * CAKE_WARP);
    }
    /* Waits for a stage's chunks, and begins to copy a later stage to the place that is free now. */
    __device__ __forceinline__ const uint4 *take(int stage) const
    {
        const int then = stage + STAGES - 1;
        await_copies<STAGES - 2>();
        if (then < stages_of<STEPS>::ALL)
            bring<STEPS>(place(then), now, then);
        else if (more)
            bring<STEPS>(place(then), next, then - stages_of<STEPS>::ALL);
        end_copies();
        return place(stage);
    }
};

template <int STEPS>
__device__ __forceinline__ void multiply_keys(float (*score)[4], const walk<STEPS> &w, const uint4 *query)
{
    const int lane = (int)threadIdx.x % CAKE_WARP;
#pragma unroll
    for (int i = 0; i < COLUMNS * 4; i++)
        score[i / 4][i % 4] = 0;
#pragma unroll
    for (int stage = 0; stage < stages_of<STEPS>::KEYS; stage++) {
        const uint4 *from = w.take(stage);
#pragma unroll
        for (int i = 0; i < 2 && 2 * stage + i < STEPS; i++) {
            const uint4 q = query[(2 * stage + i) * CAKE_WARP + lane], low = from[2 * i * CAKE_WARP],
                        high = from[(2 * i + 1) * CAKE_WARP];
            const uint32_t a[4] = {q.x, q.y, q.z, q.w};
            const uint32_t b[4][2] = {{low.x, high.x}, {low.y, high.y}, {low.z, high.z}, {low.w, high.w}};
#pragma unroll
            for (int j = 0; j < COLUMNS; j++)
                multiply_tile<cake_bf16>(score[j], a, b[j]);
        }
    }
}

/* Turns scores into weights and adds values. ALL: every line sees every position of the part; else sees has
 * the positions that lines see. */
template <bool ALL, int STEPS>
__device__ __forceinline__ void multiply_values(progress<STEPS> &p, float (*score)[4], const attention &a,
                                                const walk<STEPS> &w, uint32_t sees)
{
    const int g = (int)threadIdx.x % CAKE_WARP / 4;
    const uint32_t both[2] = {sees, sees};
    uint32_t weight[2][4], visible[2][2];
    weigh<ALL>(score, p, a, both);
    pack_weights(weight, score);
    find_visible(visible, sees);
#pragma unroll
    for (int m = 0; m < stages_of<STEPS>::KEYS; m++) {
        const uint4 *from = w.take(stages_of<STEPS>::KEYS + m);
#pragma unroll
        for (int step = 0; step < 2; step++) {
            auto add = [&](int to, uint32_t x, uint32_t y) {
                const uint32_t b[2] = {ALL ? x : x & visible[step][0], ALL ? y : y & visible[step][1]};
                multiply_tile<cake_bf16>(p.sum[to], weight[step], b);
            };
            const uint4 x = from[2 * step * CAKE_WARP], y = from[(2 * step + 1) * CAKE_WARP];
            if (m < STEPS / 2) {
                add(4 * m, x.x, y.x);
                add(4 * m + 1, x.y, y.y);
                add(4 * m + 2, x.z, y.z);
                add(4 * m + 3, x.w, y.w);
            } else { /* two tiles, of 2 neighbouring elements */
                add(4 * m, g % 2 ? x.z : x.x, g % 2 ? y.z : y.x);
                add(4 * m + 1, g % 2 ? x.w : x.y, g % 2 ? y.w : y.y);
            }
        }
    }
}

/* Starts a warp on its parts of [first, last], which warps take in turn: starts the copies of its first
 * stages. */
template <int STEPS>
__device__ __forceinline__ walk<STEPS> set_out(const attention &a, const lines &l, int slot, int first,
                                               int last, uint4 *ring)
{
    const int part = first / PART + (int)threadIdx.x / CAKE_WARP;
    walk<STEPS> w;
    w.ring = ring + threadIdx.x % CAKE_WARP;
    w.turn = 0;
    if (part <= last / PART)
        w.now = find_part<STEPS>(a, l, slot, part);
    for (int stage = 0; stage < STAGES - 1; stage++) {
        if (part <= last / PART)
            bring<STEPS>(w.place(stage), w.now, stage);
        end_copies();
    }
    return w;
}

template <int STEPS>
__device__ __forceinline__ void walk_parts(progress<STEPS> &p, const attention &a, const lines &l, int slot,
                                           int first, int last, const uint4 *query, walk<STEPS> w)
{
    const int end = last / PART + 1;
    for (int part = first / PART + (int)threadIdx.x / CAKE_WARP; part < end; part += WARPS) {
        const uint32_t sees = positions(first - part * PART, last - part * PART);
        w.more = part + WARPS < end;
        if (w.more)
            w.next = find_part<STEPS>(a, l, slot, part + WARPS);
        float score[COLUMNS][4];
        multiply_keys<STEPS>(score, w, query);
        if (sees == CAKE_ALL)
            multiply_values<true>(p, score, a, w, sees);
        else
            multiply_values<false>(p, score, a, w, sees);
        w.now = w.next;
        w.turn += stages_of<STEPS>::ALL;
    }
}

/* The row and segment of a block. */
struct turn {
    const cake_row *row;
    int at;                 /* of the wave's rows */
    int segment, n_segment; /* of the row */
    int first, last;        /* positions */
};

__device__ __forceinline__ turn turn_of(const attention &a)
{
    turn t;
    t.at = (int)blockIdx.x / a.n_segment;
    t.segment = (int)blockIdx.x % a.n_segment;
    t.row = &a.rows[t.at];
    const int begun = cake_kv_first(&a.kv, t.row), size = cake_cuda_segment(t.row->pos - begun + 1),
              zero = (begun / size + t.segment) * size;
    t.n_segment = t.row->pos / size - begun / size + 1;
    t.first = max(begun, zero);
    t.last = min(t.row->pos, zero + size - 1);
    return t;
}

/* The results of the warps of a block, for each line. */
struct shares {
    float max[WARPS][LINES], total[WARPS][LINES];

    __device__ __forceinline__ float largest(int line) const
    {
        float all = max[0][line];
        for (int w = 1; w < WARPS; w++)
            all = fmaxf(all, max[w][line]);
        return all;
    }
    __device__ __forceinline__ float whole(int line, float all) const
    {
        float sum = 0;
        for (int w = 0; w < WARPS; w++)
            sum = max[w][line] == -INFINITY ? sum : fused(total[w][line], exp2f(max[w][line] - all), sum);
        return sum;
    }
};

/* Warps add their sums, one after the other, to sum [LINES]. */
template <int STEPS>
__device__ __forceinline__ void add_up(float (*sum)[16 * STEPS + 1], shares &s, const progress<STEPS> &p)
{
    const int warp = (int)threadIdx.x / CAKE_WARP, lane = (int)threadIdx.x % CAKE_WARP, g = lane / 4,
              t = lane % 4;
#pragma unroll
    for (int i = 0; i < 2; i++)
        if (t == 0) {
            s.max[warp][g + 8 * i] = p.max[i];
            s.total[warp][g + 8 * i] = p.total[i];
        }
    __syncthreads();
    for (int w = 0; w < WARPS; w++) {
        if (w == warp)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int line = g + 8 * i;
                const float share = p.max[i] == -INFINITY ? 0 : exp2f(p.max[i] - s.largest(line));
#pragma unroll
                for (int tile = 0; tile < 2 * STEPS; tile++)
#pragma unroll
                    for (int j = 0; j < 2; j++) {
                        float &to = sum[line][element_of<STEPS>(tile, t, j)];
                        to = fused(p.sum[tile][2 * i + j], share, w ? to : 0);
                    }
            }
        __syncthreads();
    }
}

/* Whether this block is the last to finish of the blocks of a row and the same heads; if so, it sees what the
 * others have written (CUDA C++ Programming Guide, "Memory Fence Functions"). */
__device__ __forceinline__ bool is_last(const attention &a, const turn &t)
{
    __shared__ int before;
    int32_t *arrived = &a.arrived[t.at * (int)gridDim.y + (int)blockIdx.y];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        before = atomicAdd(arrived, 1);
    __syncthreads();
    const bool last = before == t.n_segment - 1;
    __threadfence();
    if (last && threadIdx.x == 0)
        *arrived = 0;
    return last;
}

/* Joins the segments of a row, always in the same order. A warp for each head. */
template <int STEPS>
__device__ __forceinline__ void join_segments(const attention &a, const turn &t, const lines &l)
{
    enum { DIM = 16 * STEPS, EACH = (DIM + CAKE_WARP - 1) / CAKE_WARP };
    const int lane = (int)threadIdx.x % CAKE_WARP;
    for (int line = (int)threadIdx.x / CAKE_WARP; line < l.heads; line += WARPS) {
        const int64_t item = (int64_t)t.at * a.n_head + l.first_head + line;
        const float *part = a.part + item * a.n_segment * (DIM + 2);
        float most = -INFINITY, total = 0, sum[EACH] = {0};
        for (int i = lane; i < t.n_segment; i += CAKE_WARP)
            most = fmaxf(most, __ldcg(part + i * (DIM + 2)));
        for (int flip = CAKE_WARP / 2; flip; flip /= 2)
            most = fmaxf(most, __shfl_xor_sync(CAKE_ALL, most, flip));
#pragma unroll 4
        for (int i = 0; i < t.n_segment; i++) {
            const float *next = part + i * (DIM + 2), share = exp2f(__ldcg(next) - most);
            total = fused(__ldcg(next + 1), share, total);
#pragma unroll
            for (int e = 0; e < EACH; e++)
                if (e * CAKE_WARP + lane < DIM)
                    sum[e] = fused(__ldcg(next + 2 + e * CAKE_WARP + lane), share, sum[e]);
        }
#pragma unroll
        for (int e = 0; e < EACH; e++)
            if (e * CAKE_WARP + lane < DIM)
                put(a, item * DIM + e * CAKE_WARP + lane, sum[e] / total);
    }
}

/* A block for a segment of a generated row. grid: segments of rows, bundles of heads. */
template <int STEPS>
__global__ void __launch_bounds__(WARPS *CAKE_WARP, 2) attend_decode(attention a, int heads)
{
    enum { DIM = 16 * STEPS };
    begin_kernel();
    __shared__ uint4 query[STEPS * CAKE_WARP], ring[WARPS][STAGES * CHUNKS * CAKE_WARP];
    __shared__ shares share;
    const int warp = (int)threadIdx.x / CAKE_WARP;
    const turn t = turn_of(a);
    if (t.segment >= t.n_segment)
        return; /* the whole block */
    const lines l = lines_of(a, (int)blockIdx.y, heads, t.at, 1);
    const walk<STEPS> w = set_out<STEPS>(a, l, t.row->slot, t.first, t.last, ring[warp]);
    if (warp == 0) /* while keys are loading */
        load_queries<STEPS, 8>(query, a, l, 0);
    __syncthreads();
    progress<STEPS> p;
    begin(p);
    walk_parts<STEPS>(p, a, l, t.row->slot, t.first, t.last, query, w);
    __syncthreads();
    float(*sum)[DIM + 1] = (float(*)[DIM + 1]) ring;
    static_assert(sizeof ring >= LINES * sizeof *sum, "sums have room where the ring was");
    add_up<STEPS>(sum, share, p);
    for (int line = 0; line < l.heads; line++) {
        const float all = share.largest(line), whole = share.whole(line, all);
        const int64_t item = (int64_t)t.at * a.n_head + l.first_head + line;
        float *part = a.part + (item * a.n_segment + t.segment) * (DIM + 2);
        for (int j = (int)threadIdx.x; j < DIM; j += WARPS * CAKE_WARP)
            if (t.n_segment == 1)
                put(a, item * DIM + j, sum[line][j] / whole);
            else
                part[2 + j] = sum[line][j];
        if (threadIdx.x == 0 && t.n_segment > 1) {
            part[0] = all;
            part[1] = whole;
        }
    }
    if (t.n_segment > 1 && is_last(a, t))
        join_segments<STEPS>(a, t, l);
}

template <int STEPS> static void launch(const attention &a, int n)
{
    const int heads = min(a.group, (int)LINES);
    CAKE_LAUNCH(attend_decode<STEPS>,
                dim3((unsigned)n * (unsigned)a.n_segment, groups(a.group, heads) * (unsigned)a.kv.n_kv),
                dim3(WARPS * CAKE_WARP), 0, a, heads);
}

void attend_decode_rows(const attention &a, int n)
{
    switch (a.kv.head_dim / 16) {
    case 4:
        launch<4>(a, n);
        break;
    case 5:
        launch<5>(a, n);
        break;
    case 6:
        launch<6>(a, n);
        break;
    case 8:
        launch<8>(a, n);
        break;
    default:
        launch<16>(a, n);
    }
}
