/* SPDX-License-Identifier: Apache-2.0
 *
 * In: queries, and K and V in pages. Out: attention (kernels.h, attend). Heads and caches that allow tile
 * products use attend_prefill.cu and attend_decode.cu; others use the kernel here, a warp per row and head.
 */
#include "kernels/cuda/attend.h"

/* For heads and caches without tile products: a warp per row and head, lanes along positions. */
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
                score = fused(
                    q[j], to_float(((const T *)a.kv.k)[at + cake_kv_key(&a.kv, pos % CAKE_PAGE, j)]), score);
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
                continue; /* not seen: its memory may hold anything */
            for (int j = lane; j < dim; j += CAKE_WARP)
                sum[j] = fused(
                    w, to_float(((const T *)a.kv.v)[at + cake_kv_value(&a.kv, (from + i) % CAKE_PAGE, j)]),
                    sum[j]);
        }
    }
    for (int j = lane; j < dim; j += CAKE_WARP)
        ((float *)a.out)[item * dim + j] = sum[j] / total;
}

template <typename T> static void launch_any(const attention &a)
{
    const size_t sums = (size_t)a.kv.head_dim * sizeof(float);
    CAKE_LAUNCH(attend_any<T>, dim3((unsigned)a.n_row * (unsigned)a.n_head), dim3(CAKE_WARP), sums, a);
}

size_t cake_cuda_attend_part(int n_head, int head_dim, int n_segment)
{
    return (size_t)n_head * (size_t)n_segment * ((size_t)head_dim + 2) * sizeof(float);
}

void cake_cuda_attend(void *out, cake_dtype is, const float *q, const cake_kv *kv, const cake_row *rows,
                      int n_generated, int n_row, int n_head, float scale, float cap, float *part,
                      int n_segment, int32_t *arrived)
{
    const bool tiles = kv->dtype == CAKE_BF16 && cake_cuda_tiles(kv->head_dim);
    attention a = {out,   is,  q,    *kv,     rows,     n_row, n_head, n_head / kv->n_kv,
                   scale, cap, part, arrived, n_segment};
    if (tiles) {
        const float log2_e = 1.44269504F; /* exp(x) = 2^(log2(e) x) */
        a.scale = cap > 0 ? scale / cap : scale * log2_e;
        a.cap = cap * log2_e;
        if (n_generated)
            attend_decode_rows(a, n_generated);
        if (n_generated < n_row)
            attend_prefill_rows(a, n_generated);
    } else if (kv->dtype == CAKE_F32)
        launch_any<float>(a);
    else if (kv->dtype == CAKE_BF16)
        launch_any<cake_bf16>(a);
    else
        launch_any<cake_f16>(a);
}
