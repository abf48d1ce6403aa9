/* SPDX-License-Identifier: Apache-2.0
 *
 * In: the leaders of groups of scores (topk.h). Out: the best of each row.
 */
#include "kernels/cuda/layout.h"
#include "kernels/cuda/topk.h"

enum { THREADS = 256 };

/* The best of all threads' entries, for all threads. */
__device__ __forceinline__ cake_ranked best_of_block(cake_ranked mine, cake_ranked *place)
{
    mine = best_of_warp(mine);
    __syncthreads();
    if (threadIdx.x % CAKE_WARP == 0)
        place[threadIdx.x / CAKE_WARP] = mine;
    __syncthreads();
    for (int i = 0; i < THREADS / CAKE_WARP; i++)
        mine = before(place[i], mine) ? place[i] : mine;
    return mine;
}

/* to [most] = the best of from [n], the best first; nothing() if there are fewer. A thread searches its own
 * entries again only when one of them was taken. */
__device__ __forceinline__ void choose(cake_ranked *to, const cake_ranked *from, int n, int most,
                                       cake_ranked *place)
{
    cake_ranked last = {INFINITY, -1}, mine = last;
    for (int i = 0; i < most; i++) {
        if (mine.id == last.id) {
            mine = nothing();
#pragma unroll 4
            for (int j = (int)threadIdx.x; j < n; j += THREADS) {
                cake_ranked one = from[j];
                if (before(last, one) && before(one, mine))
                    mine = one;
            }
        }
        last = best_of_block(mine, place);
        if (threadIdx.x == 0)
            to[i] = last;
    }
    __syncthreads();
}

/* A block a row. */
__global__ void __launch_bounds__(THREADS)
    choose_of_leaders(cake_topk *best, const cake_ranked *leader, const float *score, int n_out)
{
    begin_kernel();
    __shared__ cake_ranked chosen[CAKE_MAX_TOPK], found[CAKE_MAX_TOPK * CAKE_WARP],
        place[THREADS / CAKE_WARP];
    const int64_t row = blockIdx.x;
    cake_topk *to = best + row;
    const int most = to->k, n_group = groups_of_scores(n_out);
    choose(chosen, leader + row * n_group, n_group, most, place);
    if (most > 1) {
        for (int j = (int)threadIdx.x; j < most * CAKE_WARP; j += THREADS) {
            int head = chosen[j / CAKE_WARP].id;
            int id = head / CAKE_WARP * CAKE_WARP + j % CAKE_WARP;
            found[j] = nothing();
            if (head != INT32_MAX && id < n_out && is_whole(score[row * n_out + id])) {
                found[j].score = score[row * n_out + id];
                found[j].id = id;
            }
        }
        __syncthreads();
        choose(chosen, found, most * CAKE_WARP, most, place);
    }
    if (threadIdx.x == 0) {
        int n = 0;
        for (; n < most && chosen[n].id != INT32_MAX; n++)
            to->held[n] = chosen[n];
        to->n = n;
    }
}

/* For products that do not call lead: score [n_row, n_out] is complete. A warp for each group; grid: groups
 * of scores, rows. */
__global__ void __launch_bounds__(THREADS) lead_of_scores(float *score, leading to, int n_out)
{
    begin_kernel();
    const int row = (int)blockIdx.y,
              first = (int)(blockIdx.x * THREADS + threadIdx.x) / CAKE_WARP * CAKE_WARP;
    float *out = score + (int64_t)row * n_out;
    lead(out, to, out[min(first + (int)threadIdx.x % CAKE_WARP, n_out - 1)], row, first, n_out);
}

void cake_cuda_lead(float *score, const leading &to, int n_out, int n_row)
{
    CAKE_LAUNCH(lead_of_scores, dim3((unsigned)((n_out + THREADS - 1) / THREADS), (unsigned)n_row),
                dim3(THREADS), 0, score, to, n_out);
}

void cake_cuda_topk(const leading &from, const float *score, int n_out, int n_row)
{
    CAKE_LAUNCH(choose_of_leaders, dim3((unsigned)n_row), dim3(THREADS), 0, from.best, from.leader, score,
                n_out);
}
