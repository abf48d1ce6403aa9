/* SPDX-License-Identifier: Apache-2.0
 *
 * In: rows, one at a time. Out: embeddings, norms, rotated heads, K and V in their pages, rows packed for
 * products.
 * Invariant: a row's sums are taken in an order that depends on its length only.
 */
#include "kernels/cuda/activation.h"
#include "kernels/cuda/cp_async.h"
#include "kernels/cuda/device_util.h"
#include "kernels/cuda/layout.h"

enum {
    THREADS = 256,
    LINE = 32,  /* floats of a cache line */
    HEADS = 4,  /* heads that a block rotates, a warp for each */
    LONG = 1024 /* from this length on a whole block normalises a row (not a head) */
};

static unsigned groups(int64_t n, int of)
{
    return (unsigned)((n + of - 1) / of);
}

/* In grids of rows and parts of a row: the thread's element of the row, if the row has so many. */
__device__ __forceinline__ int column_here()
{
    return (int)(blockIdx.y * THREADS + threadIdx.x);
}

/* grid: rows, parts of a row. */
template <typename T>
__global__ void gather_rows(float *out, const T *w, const int32_t *row, int n_in, int width, float factor)
{
    begin_kernel();
    const int j = column_here();
    if (j < n_in)
        out[(int64_t)blockIdx.x * n_in + j] = to_float(w[(int64_t)row[blockIdx.x] * width + j]) * factor;
}

__global__ void gather_int8(float *out, const char *w, const int32_t *row, int n_in, int width, size_t step,
                            float factor)
{
    begin_kernel();
    const char *from = w + row[blockIdx.x] * step;
    const float *scale = (const float *)(from + width);
    const int j = column_here();
    if (j < n_in)
        out[(int64_t)blockIdx.x * n_in + j] =
            (float)((const int8_t *)from)[j] * scale[j / CAKE_I8_GROUP] * factor;
}

void cake_cuda_gather(float *out, const cake_weight *w, const int32_t *row, int n, float factor)
{
    int width = cake_cuda_width(w->dtype, w->n_in);
    dim3 grid((unsigned)n, groups(w->n_in, THREADS));
    if (w->dtype == CAKE_I8)
        CAKE_LAUNCH(gather_int8, grid, dim3(THREADS), 0, out, (const char *)w->data, row, w->n_in, width,
                    cake_cuda_step(CAKE_I8, w->n_in), factor);
    else if (w->dtype == CAKE_F32)
        CAKE_LAUNCH(gather_rows<float>, grid, dim3(THREADS), 0, out, (const float *)w->data, row, w->n_in,
                    width, factor);
    else if (w->dtype == CAKE_BF16)
        CAKE_LAUNCH(gather_rows<cake_bf16>, grid, dim3(THREADS), 0, out, (const cake_bf16 *)w->data, row,
                    w->n_in, width, factor);
    else
        CAKE_LAUNCH(gather_rows<cake_f16>, grid, dim3(THREADS), 0, out, (const cake_f16 *)w->data, row,
                    w->n_in, width, factor);
}

/* One thread's part of a row's sum of squares, of `step` threads. */
__device__ __forceinline__ float squares(const float *x, int dim, int step)
{
    float sum = 0;
    for (int i = (int)threadIdx.x % step; i < dim; i += step)
        sum = fused(x[i], x[i], sum);
    return sum;
}

/* One over the root mean square of a row, by a warp, all of whose lanes get it. */
__device__ __forceinline__ float norm_by_warp(const float *x, int dim, float eps)
{
    return 1 / sqrtf(warp_sum(squares(x, dim, CAKE_WARP)) / (float)dim + eps);
}

/* The same; rows of LONG elements or more are summed by a block. So a shorter head has the same bits as a row
 * of its length. */
__device__ __forceinline__ float norm_of(const float *x, int dim, float eps, float *place)
{
    return dim < LONG ? norm_by_warp(x, dim, eps)
                      : 1 / sqrtf(block_sum(squares(x, dim, THREADS), place) / (float)dim + eps);
}

/* Rows of a block of THREADS threads. */
static unsigned rows_of(int dim)
{
    return dim < LONG ? THREADS / CAKE_WARP : 1;
}

/* Rows to mark if they are not finite; NULL: none. */
struct marking {
    cake_row *rows;
    int32_t here;
};

/* Called by all threads of a row; those that find something write the same value. */
__device__ __forceinline__ void mark_if_broken(cake_row *row, int32_t here, const float *x, int dim, int step)
{
    bool bad = false;
    for (int i = (int)threadIdx.x % step; i < dim; i += step)
        bad |= !(fabsf(x[i]) <= FLT_MAX);
    if (bad && !row->nonfinite)
        row->nonfinite = here;
}

/* rmsnorm, to rows of `width` elements, of which those from dim on become zero. residual and out may be x:
 * after the sum is complete, each thread writes only what it has read itself. gate: rmsnorm_gated. */
template <typename T>
__global__ void normalise(T *out, const float *x, const float *weight, const float *residual,
                          const float *gate, int n_row, int dim, int width, float eps, marking mark)
{
    let_next_begin();
    for (int i = (int)threadIdx.x * LINE; i < dim; i += THREADS * LINE)
        call_ahead(weight + i);
    await_before();
    __shared__ float place[CAKE_WARP];
    const int step = dim < LONG ? CAKE_WARP : THREADS;
    const int64_t row =
        dim < LONG ? (int64_t)blockIdx.x * (THREADS / CAKE_WARP) + threadIdx.x / CAKE_WARP : blockIdx.x;
    if (row >= n_row)
        return; /* the whole warp */
    const int64_t at = row * dim, to = row * width;
    const float scale = norm_of(x + at, dim, eps, place);
    if (mark.rows &&
        !(scale > 0)) /* the sum of squares is not finite: the row is not, or only the sum overflowed */
        mark_if_broken(&mark.rows[row], mark.here, x + at, dim, step);
    enum { BATCH = 8 }; /* elements loaded together, before any of them may be overwritten */
#pragma unroll 1
    for (int first = (int)threadIdx.x % step; first < width; first += BATCH * step) {
        float value[BATCH], factor[BATCH], passes[BATCH], rest[BATCH];
#pragma unroll
        for (int e = 0; e < BATCH; e++) {
            const int i = first + e * step;
            const bool in = i < dim; /* this element belongs to the row */
            value[e] = in ? x[at + i] : 0;
            factor[e] = in ? weight[i] : 0;
            passes[e] = in && gate ? gate[at + i] : 0;
            rest[e] = in && residual ? residual[at + i] : 0;
        }
#pragma unroll
        for (int e = 0; e < BATCH; e++) {
            const int i = first + e * step;
            float v = value[e] * scale * factor[e];
            if (gate)
                v *= passes[e] / (1 + expf(-passes[e]));
            if (i < width)
                from_float(out[to + i], i >= dim ? 0.0f : residual ? v + rest[e] : v);
        }
    }
}

template <typename T>
static void launch_norm(T *out, const float *x, const float *weight, const float *residual, const float *gate,
                        int n_row, int dim, int width, float eps, marking mark = {})
{
    CAKE_LAUNCH(normalise<T>, dim3(groups(n_row, (int)rows_of(dim))), dim3(THREADS), 0, out, x, weight,
                residual, gate, n_row, dim, width, eps, mark);
}

void cake_cuda_rmsnorm(float *out, const float *x, const float *weight, const float *residual, int n_row,
                       int dim, float eps)
{
    launch_norm(out, x, weight, residual, NULL, n_row, dim, dim, eps);
}

void cake_cuda_rmsnorm_gated(float *x, const float *gate, const float *weight, int n_row, int dim, float eps)
{
    launch_norm(x, x, weight, NULL, gate, n_row, dim, dim, eps);
}

void cake_cuda_rmsnorm_pack(void *to, const float *x, const float *weight, cake_dtype dtype, int n_row,
                            int dim, float eps, cake_row *rows, int32_t here)
{
    const int width = cake_cuda_width(dtype, dim);
    const marking mark = {rows, here};
    if (dtype == CAKE_F32)
        launch_norm((float *)to, x, weight, NULL, NULL, n_row, dim, width, eps, mark);
    else if (dtype == CAKE_BF16)
        launch_norm((cake_bf16 *)to, x, weight, NULL, NULL, n_row, dim, width, eps, mark);
    else
        launch_norm((cake_f16 *)to, x, weight, NULL, NULL, n_row, dim, width, eps, mark);
}

/* A warp rotates a head and calls put(i, value) for each element, after all lanes have read theirs: so put
 * may overwrite the head. */
template <typename PUT>
__device__ __forceinline__ void rotate_head(const float *head, const float *norm, float eps, const float *cos,
                                            const float *sin, int head_dim, int n_rot, const PUT &put)
{
    const int lane = (int)threadIdx.x % CAKE_WARP, half = n_rot / 2;
    const float scale = norm ? norm_by_warp(head, head_dim, eps) : 1;
    for (int i = n_rot + lane; i < head_dim; i += CAKE_WARP)
        put(i, norm ? head[i] * scale * norm[i] : head[i]);
    for (int i = lane; i < half; i += CAKE_WARP) {
        float a = head[i], b = head[i + half];
        if (norm) {
            a = a * scale * norm[i];
            b = b * scale * norm[i + half];
        }
        put(i, fused(a, cos[i], -(b * sin[i])));
        put(i + half, fused(b, cos[i], a * sin[i]));
    }
}

/* A warp for each head. */
__global__ void rotate_heads(float *x, const float *norm, float eps, const float *cos, const float *sin,
                             int64_t n, int n_head, int head_dim, int n_rot)
{
    begin_kernel();
    const int64_t item = (int64_t)blockIdx.x * HEADS + threadIdx.x / CAKE_WARP,
                  at = item / n_head * (n_rot / 2);
    if (item >= n)
        return; /* the whole warp */
    float *head = x + item * head_dim;
    rotate_head(head, norm, eps, cos + at, sin + at, head_dim, n_rot,
                [=](int i, float value) { head[i] = value; });
}

void cake_cuda_rope(float *x, const float *norm, float eps, const float *cos, const float *sin, int n_row,
                    int n_head, int head_dim, int n_rot)
{
    int64_t n = (int64_t)n_row * n_head;
    CAKE_LAUNCH(rotate_heads, dim3(groups(n, HEADS)), dim3(HEADS * CAKE_WARP), 0, x, norm, eps, cos, sin, n,
                n_head, head_dim, n_rot);
}

/* A warp for each row and head of q, k or v: q is rotated in place, k is rotated into its page, v goes to its
 * page as it is. */
template <typename T>
__global__ void rotate_and_store(cake_kv kv, float *q, int n_head, const float *k, const float *v,
                                 cake_rope_args rope, const cake_row *rows, int64_t n)
{
    begin_kernel();
    const int64_t item = (int64_t)blockIdx.x * HEADS + threadIdx.x / CAKE_WARP;
    if (item >= n)
        return; /* the whole warp */
    const int of_row = n_head + 2 * kv.n_kv, which = (int)(item % of_row);
    const int64_t token = item / of_row;
    const float *cos = rope.cos + token * (rope.n_rot / 2), *sin = rope.sin + token * (rope.n_rot / 2);
    if (which < n_head) {
        float *head = q + (token * n_head + which) * kv.head_dim;
        rotate_head(head, rope.q_norm, rope.eps, cos, sin, kv.head_dim, rope.n_rot,
                    [=](int i, float value) { head[i] = value; });
        return;
    }
    const cake_row row = rows[token];
    const int group = (which - n_head) % kv.n_kv, line = row.pos % CAKE_PAGE;
    const size_t at = cake_kv_page(&kv, row.slot, row.pos, group);
    const int64_t from = (token * kv.n_kv + group) * kv.head_dim;
    if (which < n_head + kv.n_kv)
        rotate_head(
            k + from, rope.k_norm, rope.eps, cos, sin, kv.head_dim, rope.n_rot,
            [=](int i, float value) { from_float(((T *)kv.k)[at + cake_kv_key(&kv, line, i)], value); });
    else
        for (int i = (int)threadIdx.x % CAKE_WARP; i < kv.head_dim; i += CAKE_WARP)
            from_float(((T *)kv.v)[at + cake_kv_value(&kv, line, i)], v[from + i]);
}

template <typename T>
static void launch_rope_kv_store(const cake_kv *kv, float *q, int n_head, const float *k, const float *v,
                                 const cake_rope_args *rope, const cake_row *rows, int n_row)
{
    const int64_t n = (int64_t)n_row * (n_head + 2 * kv->n_kv);
    CAKE_LAUNCH(rotate_and_store<T>, dim3(groups(n, HEADS)), dim3(HEADS * CAKE_WARP), 0, *kv, q, n_head, k, v,
                *rope, rows, n);
}

void cake_cuda_rope_kv_store(const cake_kv *kv, float *q, int n_head, const float *k, const float *v,
                             const cake_rope_args *rope, const cake_row *rows, int n_row)
{
    if (kv->dtype == CAKE_F32)
        launch_rope_kv_store<float>(kv, q, n_head, k, v, rope, rows, n_row);
    else if (kv->dtype == CAKE_BF16)
        launch_rope_kv_store<cake_bf16>(kv, q, n_head, k, v, rope, rows, n_row);
    else
        launch_rope_kv_store<cake_f16>(kv, q, n_head, k, v, rope, rows, n_row);
}

/* A block for each row and head. */
template <typename T>
__global__ void store_heads(cake_kv kv, const float *k, const float *v, const cake_row *rows)
{
    begin_kernel();
    const int64_t item = blockIdx.x;
    const cake_row row = rows[item / kv.n_kv];
    const size_t at = cake_kv_page(&kv, row.slot, row.pos, (int)(item % kv.n_kv));
    const int line = row.pos % CAKE_PAGE;
    for (int j = (int)threadIdx.x; j < kv.head_dim; j += (int)blockDim.x) {
        from_float(((T *)kv.k)[at + cake_kv_key(&kv, line, j)], k[item * kv.head_dim + j]);
        from_float(((T *)kv.v)[at + cake_kv_value(&kv, line, j)], v[item * kv.head_dim + j]);
    }
}

void cake_cuda_kv_store(const cake_kv *kv, const float *k, const float *v, const cake_row *rows, int n_row)
{
    dim3 grid((unsigned)n_row * (unsigned)kv->n_kv), block(64);
    if (kv->dtype == CAKE_F32)
        CAKE_LAUNCH(store_heads<float>, grid, block, 0, *kv, k, v, rows);
    else if (kv->dtype == CAKE_BF16)
        CAKE_LAUNCH(store_heads<cake_bf16>, grid, block, 0, *kv, k, v, rows);
    else
        CAKE_LAUNCH(store_heads<cake_f16>, grid, block, 0, *kv, k, v, rows);
}

__device__ __forceinline__ float element(const float *x, const float *gate, int act, int64_t at)
{
    return gate ? passed(x[at], gate[at], act) : x[at];
}

/* grid: rows, parts of a row. */
template <typename T>
__global__ void pack_rows(T *to, const float *x, const float *gate, int act, int n_in, int width)
{
    begin_kernel();
    const int64_t row = blockIdx.x;
    const int j = column_here();
    if (j < width)
        from_float(to[row * width + j], j < n_in ? element(x, gate, act, row * n_in + j) : 0.0f);
}

/* Quantises as cake_i8_from does, but with float32 scales: a warp for each group of a row. grid: rows,
 * groups. */
__global__ void quantize_rows(char *to, const float *x, const float *gate, int act, int n_in, int width,
                              size_t step)
{
    begin_kernel();
    const int lane = (int)threadIdx.x, group = (int)blockIdx.y;
    const int64_t row = blockIdx.x;
    float value[CAKE_I8_GROUP / CAKE_WARP], most = 0;
    bool finite = true;
    for (int i = 0; i < CAKE_I8_GROUP / CAKE_WARP; i++) {
        int j = group * CAKE_I8_GROUP + i * CAKE_WARP + lane;
        value[i] = j < n_in ? element(x, gate, act, row * n_in + j) : 0;
        finite = finite && fabsf(value[i]) <= FLT_MAX;
        most = fmaxf(most, fabsf(value[i]));
    }
    for (int flip = CAKE_WARP / 2; flip; flip /= 2) {
        most = fmaxf(most, __shfl_xor_sync(CAKE_ALL, most, flip));
        finite = __shfl_xor_sync(CAKE_ALL, (int)finite, flip) && finite;
    }
    float factor = finite && most >= CAKE_I8_LEAST ? 127 / most : 0;
    for (int i = 0; i < CAKE_I8_GROUP / CAKE_WARP; i++)
        ((int8_t *)(to + row * step))[group * CAKE_I8_GROUP + i * CAKE_WARP + lane] =
            (int8_t)(factor > 0 ? rintf(value[i] * factor) : 0);
    if (lane == 0)
        ((float *)(to + row * step + width))[group] = !finite ? NAN : factor > 0 ? most / 127 : 0;
}

void cake_cuda_input_pack(void *to, const float *x, const cake_gate *gate, cake_dtype dtype, int n_in,
                          int n_row)
{
    const float *g = gate ? gate->g : NULL;
    int act = gate ? (int)gate->act : 0, width = cake_cuda_width(dtype, n_in);
    dim3 grid((unsigned)n_row, groups(width, THREADS)), block(THREADS);
    if (dtype == CAKE_I8)
        CAKE_LAUNCH(quantize_rows, dim3((unsigned)n_row, (unsigned)(width / CAKE_I8_GROUP)), dim3(CAKE_WARP),
                    0, (char *)to, x, g, act, n_in, width, cake_cuda_step(CAKE_I8, n_in));
    else if (dtype == CAKE_F32)
        CAKE_LAUNCH(pack_rows<float>, grid, block, 0, (float *)to, x, g, act, n_in, width);
    else if (dtype == CAKE_BF16)
        CAKE_LAUNCH(pack_rows<cake_bf16>, grid, block, 0, (cake_bf16 *)to, x, g, act, n_in, width);
    else
        CAKE_LAUNCH(pack_rows<cake_f16>, grid, block, 0, (cake_f16 *)to, x, g, act, n_in, width);
}

/* grid: rows, parts of a row. */
__global__ void finish_rows(float *out, const float *sum, const float *bias, const float *residual, int n_out)
{
    begin_kernel();
    const int column = column_here();
    if (column >= n_out)
        return;
    const int64_t at = (int64_t)blockIdx.x * n_out + column;
    float total = sum[at];
    if (bias)
        total += bias[column];
    out[at] = residual ? total + residual[at] : total;
}

void cake_cuda_finish(float *out, const float *sum, const float *bias, const float *residual, int n_out,
                      int n)
{
    CAKE_LAUNCH(finish_rows, dim3((unsigned)n, groups(n_out, THREADS)), dim3(THREADS), 0, out, sum, bias,
                residual, n_out);
}

/* A block for each row. */
__global__ void mark_rows(cake_row *rows, const float *x, int dim, int32_t here, bool ends)
{
    begin_kernel();
    cake_row *row = &rows[blockIdx.x];
    if (!(ends && row->no_output))
        mark_if_broken(row, here, x + (int64_t)blockIdx.x * dim, dim, THREADS);
}

void cake_cuda_mark_nonfinite(cake_row *rows, const float *x, int n_row, int dim, int32_t here, bool ends)
{
    CAKE_LAUNCH(mark_rows, dim3((unsigned)n_row), dim3(THREADS), 0, rows, x, dim, here, ends);
}

/* grid: rows, parts of a row. */
__global__ void move_rows(float *to, const float *x, const int32_t *from, int dim, bool back)
{
    begin_kernel();
    const int64_t here = (int64_t)blockIdx.x * dim, there = (int64_t)from[blockIdx.x] * dim;
    const int i = column_here();
    if (i < dim)
        to[(back ? there : here) + i] = x[(back ? here : there) + i];
}

void cake_cuda_move_rows(float *to, const float *x, const int32_t *from, int n, int dim, bool back)
{
    CAKE_LAUNCH(move_rows, dim3((unsigned)n, groups(dim, THREADS)), dim3(THREADS), 0, to, x, from, dim, back);
}
