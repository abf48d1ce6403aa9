/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a prompt's rows of gated delta nets, as delta_conv leaves them, cut into spans of at most 64 rows, none
 * of which crosses a multiple of 64 positions; and the states of their slots. Out: delta_rule
 * (kernels.h), and the states after the rows.
 *
 * The changes of the state S by a span solve a triangular system (the WY form of Yang et al. 2024, section
 * 3.2, with decays as in their 2025 paper). With g[i] the sum of the logarithms of decays up to row
 * i,
 *   A[i][j] = beta[i] (k[i] k[j]) exp(g[i] - g[j]) for j < i, T = (1 + A)^-1, M[i][j] = (q[i] k[j]) exp(g[i]
 *     - g[j]) for j <= i:
 *   change = T beta (v - exp(g) k S); out = exp(g) q S + M change; S = exp(g[last]) S + k^T exp(g[last] - g)
 *     change
 * `prepare` makes T beta and M of all spans and heads at once; `walk` then goes through a sequence's spans in
 * order, with the columns of the state divided over blocks, since they are independent.
 *
 * All is float32 by plain multiply-adds. In BF16 the state would keep 8 bits of what thousands of rows have
 * added to it; split into two BF16, products are good to 2^-17, which is less than what rows one by one have,
 * and three parts take six tile products: little is left of their speed, and GPUs before capability 8.0 have
 * none. Differences of g are summed up row by row from the later row on, never taken from two long sums, so
 * that their exponentials are at most 1 and have all their digits however strong the decay.
 *
 * Invariant: a result depends on the earlier rows of its span and on the state before the span. Missing rows
 * of a span are zeros.
 */
#include "kernels/cuda/device_util.h"
#include "kernels/cuda/layout.h"

enum {
    ROWS = CAKE_PAGE, /* of a span, at most */
    SLICE = 32,       /* elements of a row that a half of a tile holds */
    EACH = 4,         /* neighbouring rows that a thread computes */
    MAKERS = 256,     /* threads of prepare: 16 x 16 of 4 x 4 elements */
    WALKERS = 128,    /* threads of walk: 16 x 8 */
    PITCH = ROWS + 1, /* floats of a row of matrices that are read by rows and by columns */
    TILE = 2 * ROWS * SLICE,
    MATRIX = ROWS * ROWS,
};

/* Results of prepare for walk, per span and head. */
struct part {
    float solve[MATRIX]; /* [j][i]: T[i][j] beta[j] */
    float see[MATRIX];   /* [j][i]: M[i][j] */
    float key[ROWS];   /* the factor of k S: the key's 1 / length, and the decay since the span's beginning */
    float query[ROWS]; /* the factor of q S, likewise */
    float until[ROWS]; /* the factor of a change: the key's 1 / length, and the decay until the span's end */
    float last[ROWS];  /* [0]: the decay of the state over the whole span */
};

template <int N> struct alignas(4 * N) few {
    float of[N];
};

/* The source of a tile: two matrices of ROWS rows and SLICE columns; missing elements become zero. */
struct source {
    const float *half[2];
    int64_t step; /* from one row to the next */
    int n_row, n[2];
};

/* Four elements of a row lie side by side. Where depends on the row, so that threads with neighbouring rows
 * meet different banks. */
__device__ __forceinline__ int place_of(int half, int row, int group)
{
    return (half * ROWS + row) * SLICE + 4 * (group ^ (row / 4 & 7));
}

/* The block's threads load a tile into registers, each its own elements. */
template <int THREADS> __device__ __forceinline__ void fetch(float hold[TILE / THREADS], const source &s)
{
    enum { N = ROWS * SLICE / THREADS, STEP = THREADS / SLICE };
    const int lane = (int)threadIdx.x % SLICE, first = (int)threadIdx.x / SLICE;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const float *from = s.half[half] + first * s.step + lane;
        const int n_row = lane < s.n[half] ? s.n_row - first : 0;
#pragma unroll
        for (int i = 0; i < N; i++)
            hold[half * N + i] = i * STEP < n_row ? from[i * STEP * s.step] : 0;
    }
}

/* Stores them in shared memory. */
template <int THREADS> __device__ __forceinline__ void put(float *tile, const float hold[TILE / THREADS])
{
    enum { N = ROWS * SLICE / THREADS, STEP = THREADS / SLICE };
    const int lane = (int)threadIdx.x % SLICE, first = (int)threadIdx.x / SLICE;
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int i = 0; i < N; i++)
            tile[place_of(half, first + i * STEP, lane / 4) + lane % 4] = hold[half * N + i];
}

__device__ __forceinline__ few<4> four(const float *tile, int half, int row, int group)
{
    return *(const few<4> *)(tile + place_of(half, row, group));
}

/* The keys (half 0) and queries (half 1) of SLICE elements, of all rows. */
__device__ __forceinline__ source slice_of(const float *q, const float *k, int64_t channels, int n_row,
                                           int slice, int dim)
{
    const int n = min(dim - slice * SLICE, (int)SLICE);
    return {{k + slice * SLICE, q + slice * SLICE}, channels, n_row, {n, n}};
}

/* Four threads a row: the squares of a slice of keys and queries. */
__device__ __forceinline__ void add_squares(float sum[2], const float *tile)
{
    const int row = (int)threadIdx.x / 4, part = (int)threadIdx.x % 4;
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int group = 2 * part; group < 2 * part + 2; group++) {
            const few<4> x = four(tile, half, row, group);
#pragma unroll
            for (int i = 0; i < 4; i++)
                sum[half] = fused(x.of[i], x.of[i], sum[half]);
        }
}

/* One over the length of a row, from the sums of squares of its threads; 0 if there is no such row. Called by
 * the whole warp. */
__device__ __forceinline__ float length_of(float sum, bool is_there)
{
    sum += __shfl_xor_sync(CAKE_ALL, sum, 1);
    sum += __shfl_xor_sync(CAKE_ALL, sum, 2);
    return is_there ? 1 / sqrtf(sum + 1e-6f) : 0;
}

/* Called by thread `row` < ROWS. sum [i][row] gets, for each later row i, the logarithm of how much decays
 * leave of row `row` there; `to` gets the decays between the row and the ends of the span. */
__device__ __forceinline__ void chain(float *sum, part &to, const float *decay, float q, float k, int row)
{
    float since = 0, until = 0, all = 0;
    for (int i = 0; i < ROWS; i++) {
        all += decay[i];
        since = i <= row ? all : since;
        until += i > row ? decay[i] : 0;
        sum[i * PITCH + row] = until;
    }
    to.key[row] = k * expf(since);
    to.query[row] = q * expf(since);
    to.until[row] = k * expf(until);
    to.last[row] = expf(all);
}

/* Adds the products of rows 4 y to 4 y + 3 with rows 4 x to 4 x + 3 over a slice: of keys with keys, and of
 * queries with keys. */
__device__ __forceinline__ void compare(float key[EACH][EACH], float query[EACH][EACH], const float *tile,
                                        int y, int x)
{
#pragma unroll 1
    for (int group = 0; group < SLICE / 4; group++) {
        few<4> k[EACH], q[EACH], other[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            k[i] = four(tile, 0, EACH * y + i, group);
            q[i] = four(tile, 1, EACH * y + i, group);
            other[i] = four(tile, 0, EACH * x + i, group);
        }
#pragma unroll
        for (int e = 0; e < 4; e++)
#pragma unroll
            for (int i = 0; i < EACH; i++)
#pragma unroll
                for (int j = 0; j < EACH; j++) {
                    key[i][j] = fused(k[i].of[e], other[j].of[e], key[i][j]);
                    query[i][j] = fused(q[i].of[e], other[j].of[e], query[i][j]);
                }
    }
}

/* to = (1 + a)^-1, of a [ROWS][PITCH] below its diagonal. First blocks of 16 on the diagonal, column by
 * column; then, twice, two neighbouring blocks are merged into one. What is above the diagonal of `to` is
 * scratch. */
__device__ void invert(float *to, const float *a)
{
    enum { BLOCK = 16 };
    const int thread = (int)threadIdx.x;
    if (thread < ROWS) {
        const int first = thread / BLOCK * BLOCK, column = thread;
        to[column * PITCH + column] = 1;
        for (int i = column + 1; i < first + BLOCK; i++) {
            float sum = 0;
            for (int l = column; l < i; l++)
                sum = fused(a[i * PITCH + l], to[l * PITCH + column], sum);
            to[i * PITCH + column] = -sum;
        }
    }
    __syncthreads();
    for (int size = BLOCK; size < ROWS; size *= 2) {
        for (int at = thread; at < ROWS / 2 * size; at += MAKERS) {
            const int i = at / size % size, j = at % size, upper = at / (size * size) * 2 * size;
            const float *below = a + (upper + size + i) * PITCH + upper;
            float sum = 0;
            for (int l = j; l < size; l++)
                sum = fused(below[l], to[(upper + l) * PITCH + upper + j], sum);
            to[(upper + i) * PITCH + upper + size + j] = sum;
        }
        __syncthreads();
        for (int at = thread; at < ROWS / 2 * size; at += MAKERS) {
            const int i = at / size % size, j = at % size, upper = at / (size * size) * 2 * size;
            const float *row = to + (upper + size + i) * PITCH + upper + size;
            float sum = 0;
            for (int l = 0; l <= i; l++)
                sum = fused(row[l], to[(upper + l) * PITCH + upper + size + j], sum);
            to[(upper + size + i) * PITCH + upper + j] = -sum;
        }
        __syncthreads();
    }
}

/* grid: spans, heads from first_head on. */
__global__ void __launch_bounds__(MAKERS, 2)
    prepare(part *parts, const float *x, const float *a, const float *b, cake_deltanet d,
            cake_cuda_spans spans, int first_head)
{
    begin_kernel();
    __shared__ few<4> tile_memory[ROWS * PITCH / 4];
    __shared__ float system[ROWS * PITCH], scale_q[ROWS], scale_k[ROWS], decay[ROWS], beta[ROWS];
    float *tile = (float *)tile_memory;
    const int span = (int)blockIdx.x, h = first_head + (int)blockIdx.y, thread = (int)threadIdx.x;
    const int row = spans.row[span], n = spans.end[span] - row, warp = thread / CAKE_WARP;
    const int y = 4 * (warp / 2) + thread % CAKE_WARP / 8, x_of = 8 * (warp % 2) + thread % 8;
    const int64_t channels = cake_delta_channels(&d);
    const float *q = x + row * channels + (int64_t)cake_delta_key_head(&d, h) * d.key_dim;
    const float *k = q + (int64_t)d.n_key * d.key_dim;
    part &to = parts[(int64_t)span * gridDim.y + blockIdx.y];
    if (thread < ROWS) {
        const int64_t at = (int64_t)(row + thread) * d.n_value + h;
        float dt = thread < n ? a[at] + d.dt_bias[h] : 0, soft = dt > 20 ? dt : log1pf(expf(dt));
        decay[thread] = thread < n ? -expf(d.a_log[h]) * soft : 0;
        beta[thread] = thread < n ? 1 / (1 + expf(-b[at])) : 0;
    }
    float key[EACH][EACH] = {}, query[EACH][EACH] = {}, squares[2] = {};
    for (int slice = 0; slice * SLICE < d.key_dim; slice++) {
        float hold[TILE / MAKERS];
        fetch<MAKERS>(hold, slice_of(q, k, channels, n, slice, d.key_dim));
        __syncthreads();
        put<MAKERS>(tile, hold);
        __syncthreads();
        if (warp / 2 >= 2 * (warp % 2) &&
            EACH * (y & ~3) < n) /* the other blocks of 4 x 4 are above the diagonal, or beyond the span */
            compare(key, query, tile, y, x_of);
        add_squares(squares, tile);
    }
    const float length_k = length_of(squares[0], thread / 4 < n),
                length_q = length_of(squares[1], thread / 4 < n);
    if (thread % 4 == 0) {
        scale_k[thread / 4] = length_k;
        scale_q[thread / 4] = length_q / sqrtf((float)d.key_dim);
    }
    __syncthreads();
    if (thread < ROWS)
        chain(system, to, decay, scale_q[thread], scale_k[thread], thread);
    __syncthreads();
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        const int column = EACH * x_of + j;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int line = EACH * y + i;
            float rest = line >= column ? scale_k[column] * expf(system[line * PITCH + column]) : 0;
            to.see[column * ROWS + line] = line >= column ? query[i][j] * rest * scale_q[line] : 0;
            if (line > column)
                system[line * PITCH + column] = key[i][j] * rest * scale_k[line] * beta[line];
        }
    }
    __syncthreads();
    invert(tile, system);
    for (int at = thread; at < MATRIX; at += MAKERS) {
        const int column = at / ROWS, line = at % ROWS;
        to.solve[at] = line >= column ? tile[line * PITCH + column] * beta[column] : 0;
    }
}

/* The work of a block of walk. */
struct task {
    const float *q, *k, *v; /* of the first row of the wave */
    int64_t channels;
    const part *parts; /* of the first span; each next span's is n_head further */
    int n_head, key_dim, slices, stages;
};

/* A span is worked through in stages, each of which needs one tile: slices of keys and queries, then T beta,
 * M, and keys, 64 elements at a time. */
__device__ __forceinline__ source source_of(const task &t, const cake_cuda_spans &spans, int span, int stage)
{
    const int64_t first = spans.row[span] * t.channels;
    const int n = spans.end[span] - spans.row[span];
    const part &p = t.parts[(int64_t)span * t.n_head];
    if (stage < t.slices)
        return slice_of(t.q + first, t.k + first, t.channels, n, stage, t.key_dim);
    if (stage < t.slices + 2) {
        const float *matrix = stage == t.slices ? p.solve : p.see;
        return {{matrix, matrix + SLICE}, ROWS, ROWS, {SLICE, SLICE}};
    }
    const int from = (stage - t.slices - 2) * 2 * SLICE, left = t.key_dim - from;
    const float *k = t.k + first + from;
    return {{k, k + SLICE}, t.channels, n, {min(left, (int)SLICE), min(left - SLICE, (int)SLICE)}};
}

/* seen += k S and sum += q S over one slice; `state` has the slice's rows of S. */
template <int N>
__device__ __forceinline__ void look(float seen[EACH][N], float sum[EACH][N], const float *tile,
                                     const float *state, int y, int x)
{
#pragma unroll 2
    for (int group = 0; group < SLICE / 4; group++) {
        few<4> k[EACH], q[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            k[i] = four(tile, 0, EACH * y + i, group);
            q[i] = four(tile, 1, EACH * y + i, group);
        }
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const few<N> s = *(const few<N> *)(state + (4 * group + e) * 8 * N + N * x);
#pragma unroll
            for (int i = 0; i < EACH; i++)
#pragma unroll
                for (int j = 0; j < N; j++) {
                    seen[i][j] = fused(k[i].of[e], s.of[j], seen[i][j]);
                    sum[i][j] = fused(q[i].of[e], s.of[j], sum[i][j]);
                }
        }
    }
}

/* sum += (columns 4 y to 4 y + 3 of the tile, transposed) times the first n rows of `change` [ROWS][8 N]. */
template <int N>
__device__ __forceinline__ void multiply(float sum[EACH][N], const float *tile, const float *change, int y,
                                         int x, int n)
{
#pragma unroll 2
    for (int from = 0; from < n; from += 4)
#pragma unroll
        for (int row = from; row < from + 4; row++) {
            const few<4> left = four(tile, y / 8, row, y % 8);
            const few<N> right = *(const few<N> *)(change + row * 8 * N + N * x);
#pragma unroll
            for (int i = 0; i < EACH; i++)
#pragma unroll
                for (int j = 0; j < N; j++)
                    sum[i][j] = fused(left.of[i], right.of[j], sum[i][j]);
        }
}

/* The elements of a matrix [..][8 N] that are the thread's. */
template <int N> __device__ __forceinline__ few<N> &own(float *matrix, int y, int i, int x)
{
    return *(few<N> *)(matrix + (EACH * y + i) * 8 * N + N * x);
}

template <int N> __device__ __forceinline__ void clear(float x[EACH][N])
{
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < N; j++)
            x[i][j] = 0;
}

/* Copies columns [0, 8 N) of a head's state [key_dim][value_dim] to the block's [depth][8 N], or back. The
 * head has n of these columns; the others are zero. */
template <int N>
__device__ __forceinline__ void read_state(float *state, const float *kept, const cake_deltanet &d, int depth,
                                           int n)
{
    for (int at = (int)threadIdx.x; at < depth * 8 * N; at += WALKERS) {
        const int i = at / (8 * N), j = at % (8 * N);
        state[at] = kept && i < d.key_dim && j < n ? kept[(int64_t)i * d.value_dim + j] : 0;
    }
}

template <int N>
__device__ __forceinline__ void write_state(float *kept, const float *state, const cake_deltanet &d, int n)
{
    for (int at = (int)threadIdx.x; at < d.key_dim * 8 * N; at += WALKERS)
        if (at % (8 * N) < n)
            kept[(int64_t)(at / (8 * N)) * d.value_dim + at % (8 * N)] = state[at];
}

/* The stages of a block. Warps without rows in the span only join barriers: their changes are zero. */
template <int N> struct walker {
    float *tile, *state, *change; /* [TILE], [depth][8 N], [ROWS][8 N] */
    float seen[EACH][N], sum[EACH][N];
    float key[EACH], query[EACH], until[EACH], last; /* of the thread's rows: what struct part says */
    int y, x, n; /* the thread's place in the block; columns that there are from its first one on */
    int n_row;   /* of the span */
    bool busy;   /* the warp has rows */

    __device__ __forceinline__ void begin(const part &p, int rows)
    {
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            key[i] = p.key[EACH * y + i];
            query[i] = p.query[EACH * y + i];
            until[i] = p.until[EACH * y + i];
        }
        last = p.last[0];
        n_row = rows;
        busy = EACH * (y & ~3) < rows;
        clear<N>(seen);
        clear<N>(sum);
    }

    __device__ __forceinline__ void slice(int i)
    {
        if (busy)
            look<N>(seen, sum, tile, state + i * SLICE * 8 * N, y, x);
    }

    /* Computes the last slice, then v - k S. v: of the span's first row and the thread's first column. */
    __device__ __forceinline__ void ask(int i, const float *v, int64_t channels)
    {
        float value[EACH][N]; /* loaded while the slice is computed */
#pragma unroll
        for (int r = 0; r < EACH; r++)
#pragma unroll
            for (int j = 0; j < N; j++)
                value[r][j] = EACH * y + r < n_row && j < n ? v[(EACH * y + r) * channels + j] : 0;
        slice(i);
#pragma unroll
        for (int r = 0; r < EACH; r++)
#pragma unroll
            for (int j = 0; j < N; j++)
                own<N>(change, y, r, x).of[j] = value[r][j] - key[r] * seen[r][j];
    }

    __device__ __forceinline__ void solve()
    {
        clear<N>(seen);
        if (busy)
            multiply<N>(seen, tile, change, y, x, n_row);
        __syncthreads(); /* all have read the changes as they were, which are replaced now */
#pragma unroll
        for (int i = 0; i < EACH; i++)
#pragma unroll
            for (int j = 0; j < N; j++)
                own<N>(change, y, i, x).of[j] = seen[i][j];
    }

    /* Writes the output. out: of the span's first row and the thread's first column. */
    __device__ __forceinline__ void answer(float *out, int64_t step)
    {
#pragma unroll
        for (int i = 0; i < EACH; i++)
#pragma unroll
            for (int j = 0; j < N; j++)
                sum[i][j] *= query[i];
        if (busy)
            multiply<N>(sum, tile, change, y, x, n_row);
        __syncthreads(); /* all have read the changes, which are scaled next */
#pragma unroll
        for (int i = 0; i < EACH; i++)
#pragma unroll
            for (int j = 0; j < N; j++) {
                if (EACH * y + i < n_row && j < n)
                    out[(EACH * y + i) * step + j] = sum[i][j];
                own<N>(change, y, i, x).of[j] = until[i] * seen[i][j];
            }
    }

    /* Updates rows [64 i, 64 i + 64) of the state. */
    __device__ __forceinline__ void learn(int i)
    {
        float *rows = state + i * ROWS * 8 * N, now[EACH][N];
#pragma unroll
        for (int r = 0; r < EACH; r++)
#pragma unroll
            for (int j = 0; j < N; j++)
                now[r][j] = last * own<N>(rows, y, r, x).of[j];
        multiply<N>(now, tile, change, y, x, n_row);
#pragma unroll
        for (int r = 0; r < EACH; r++)
#pragma unroll
            for (int j = 0; j < N; j++)
                own<N>(rows, y, r, x).of[j] = now[r][j];
    }
};

/* 8 N columns of a head's state, which stay in shared memory while the block goes through a sequence; each
 * stage's tile is loaded while the stage before is computed. grid: groups of columns, heads from first_head
 * on, spans. */
template <int N>
__global__ void __launch_bounds__(WALKERS)
    walk(float *out, const part *parts, const float *x, cake_deltanet d, const cake_row *rows,
         cake_cuda_spans spans, int first_head)
{
    begin_kernel();
    CAKE_SHARED(float, memory);
    const int run = (int)blockIdx.z;
    if (spans.first[run] != run)
        return; /* the whole block */
    const int h = first_head + (int)blockIdx.y, column = (int)blockIdx.x * 8 * N, thread = (int)threadIdx.x;
    const int depth = (d.key_dim + ROWS - 1) / ROWS * ROWS, first = spans.row[run];
    const int64_t keys = (int64_t)d.n_key * d.key_dim, step = (int64_t)d.n_value * d.value_dim;
    const int64_t value = (int64_t)h * d.value_dim + column;
    task t;
    t.channels = cake_delta_channels(&d);
    t.q = x + (int64_t)cake_delta_key_head(&d, h) * d.key_dim;
    t.k = t.q + keys;
    t.v = x + 2 * keys + value;
    t.parts = parts + blockIdx.y;
    t.n_head = (int)gridDim.y;
    t.key_dim = d.key_dim;
    t.slices = (d.key_dim + SLICE - 1) / SLICE;
    t.stages = t.slices + 2 + depth / ROWS;
    walker<N> w;
    w.tile = memory;
    w.change = memory + TILE;
    w.state = w.change + ROWS * 8 * N;
    w.y = thread / 8;
    w.x = thread % 8;
    w.n = d.value_dim - column - N * w.x;
    float *kept = d.state + rows[first].slot * d.step + (int64_t)h * d.key_dim * d.value_dim + column;
    read_state<N>(w.state, rows[first].pos ? kept : nullptr, d, depth, d.value_dim - column);
    float hold[TILE / WALKERS];
    fetch<WALKERS>(hold, source_of(t, spans, run, 0));
    for (int span = run, stage = 0; span < spans.n && spans.first[span] == run;) {
        const int row = spans.row[span], n_row = spans.end[span] - row;
        const part &p = t.parts[(int64_t)span * t.n_head];
        __syncthreads();
        put<WALKERS>(w.tile, hold);
        __syncthreads();
        const int next = stage + 1 < t.stages ? stage + 1 : 0, next_span = span + (next == 0);
        if (next_span < spans.n) /* it may be another sequence's: loading it is harmless */
            fetch<WALKERS>(hold, source_of(t, spans, next_span, next));
        if (stage == 0)
            w.begin(p, n_row);
        if (stage < t.slices - 1)
            w.slice(stage);
        else if (stage == t.slices - 1)
            w.ask(stage, t.v + row * t.channels + N * w.x, t.channels);
        else if (stage == t.slices)
            w.solve();
        else if (stage == t.slices + 1)
            w.answer(out + row * step + value + N * w.x, step);
        else
            w.learn(stage - t.slices - 2);
        stage = next;
        span = next_span;
    }
    __syncthreads();
    write_state<N>(kept, w.state, d, d.value_dim - column);
}

static unsigned groups(int64_t n, int of)
{
    return (unsigned)((n + of - 1) / of);
}

template <int N>
static void launch_walk(float *out, const part *parts, const float *x, const cake_deltanet *d,
                        const cake_row *rows, const cake_cuda_spans *spans, int first_head, int n_head)
{
    const size_t depth = groups(d->key_dim, ROWS) * (size_t)ROWS;
    const dim3 grid(groups(d->value_dim, 8 * N), (unsigned)n_head, (unsigned)spans->n);
    CAKE_LAUNCH((walk<N>), grid, dim3(WALKERS), (TILE + (ROWS + depth) * 8 * N) * sizeof(float), out, parts,
                x, *d, rows, *spans, first_head);
}

size_t cake_cuda_delta_part(void)
{
    return sizeof(part);
}

/* Every GPU gives a block 48 KiB without a request: deep states use narrower groups of columns. */
void cake_cuda_delta_prefill(float *out, const float *x, const float *a, const float *b,
                             const cake_deltanet *d, const cake_row *rows, const cake_cuda_spans *spans,
                             int first_head, int n_head, void *parts)
{
    CAKE_LAUNCH(prepare, dim3((unsigned)spans->n, (unsigned)n_head), dim3(MAKERS), 0, (part *)parts, x, a, b,
                *d, *spans, first_head);
    if (d->key_dim > 128 || d->value_dim <= 16)
        launch_walk<2>(out, (const part *)parts, x, d, rows, spans, first_head, n_head);
    else
        launch_walk<4>(out, (const part *)parts, x, d, rows, spans, first_head, n_head);
}
