/* SPDX-License-Identifier: Apache-2.0
 *
 * In: scores of rows. Out: the same, capped, and the best of each row (base/best.h). A block looks at up to 4,096 of a
 * row's scores and leaves a list of the best of them; of up to 64 lists another one leaves one, until one is left.
 */
#include "kernels/cuda/layout.h"
#include "kernels/cuda/words.h"

enum { THREADS = 256, MOST = 4096, LISTS = MOST / CAKE_MAX_BEST };

__device__ __forceinline__ bool before(cake_ranked a, cake_ranked b)
{
    return a.score > b.score || (a.score == b.score && a.id < b.id);
}

/* Nothing is behind it. */
__device__ __forceinline__ cake_ranked nothing()
{
    cake_ranked none = {-INFINITY, INT32_MAX};
    return none;
}

/* The best of all threads' ones; all have it. */
__device__ __forceinline__ cake_ranked best_of_block(cake_ranked mine, cake_ranked *place)
{
    for (int flip = CAKE_WARP / 2; flip; flip /= 2) {
        cake_ranked other = {__shfl_xor_sync(CAKE_ALL, mine.score, flip),
                             __shfl_xor_sync(CAKE_ALL, mine.id, flip)};
        mine = before(other, mine) ? other : mine;
    }
    __syncthreads();
    if (threadIdx.x % CAKE_WARP == 0)
        place[threadIdx.x / CAKE_WARP] = mine;
    __syncthreads();
    for (int i = 0; i < THREADS / CAKE_WARP; i++)
        mine = before(place[i], mine) ? place[i] : mine;
    return mine;
}

/* to [most] = the best of found [n], in their order; nothing() where there are no more. */
__device__ __forceinline__ void choose(cake_ranked *to, const cake_ranked *found, int n, int most,
                                       cake_ranked *place)
{
    cake_ranked last = {INFINITY, -1};
    for (int i = 0; i < most; i++) {
        cake_ranked mine = nothing();
        for (int j = (int)threadIdx.x; j < n; j += THREADS)
            if (before(last, found[j]) && before(found[j], mine))
                mine = found[j];
        last = best_of_block(mine, place);
        if (threadIdx.x == 0)
            to[i] = last;
    }
}

/* lists [n_tok, gridDim.x, CAKE_MAX_BEST]; broken [n_tok] is set, never cleared. grid: parts of a row, rows. */
__global__ void choose_of_scores(float *score, cake_ranked *lists, cake_best *best, int n_out, float cap)
{
    __shared__ cake_ranked found[MOST], place[THREADS / CAKE_WARP];
    const int64_t row = blockIdx.y;
    const int first = (int)blockIdx.x * MOST, n = min((int)MOST, n_out - first);
    for (int j = (int)threadIdx.x; j < n; j += THREADS) {
        float s = score[row * n_out + first + j];
        if (cap > 0)
            score[row * n_out + first + j] = s = cap * tanhf(s / cap);
        if (!(fabsf(s) <= FLT_MAX))
            best[row].broken = true;
        found[j].score = s;
        found[j].id = first + j;
    }
    __syncthreads();
    choose(lists + (row * gridDim.x + blockIdx.x) * CAKE_MAX_BEST, found, n, best[row].most, place);
}

/* grid: groups of lists, rows. */
__global__ void choose_of_lists(cake_ranked *to, const cake_ranked *from, const cake_best *best, int n_list)
{
    __shared__ cake_ranked found[MOST], place[THREADS / CAKE_WARP];
    const int64_t row = blockIdx.y;
    const int first = (int)blockIdx.x * LISTS, lists = min((int)LISTS, n_list - first), most = best[row].most;
    for (int j = (int)threadIdx.x; j < lists * most; j += THREADS)
        found[j] = from[(row * n_list + first + j / most) * CAKE_MAX_BEST + j % most];
    __syncthreads();
    choose(to + (row * gridDim.x + blockIdx.x) * CAKE_MAX_BEST, found, lists * most, most, place);
}

/* A thread a row: what is there of its list. */
__global__ void keep(cake_best *best, const cake_ranked *list, int n_tok)
{
    const int row = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (row >= n_tok)
        return;
    int n = 0;
    for (; n < best[row].most && list[(int64_t)row * CAKE_MAX_BEST + n].id != INT32_MAX; n++)
        best[row].held[n] = list[(int64_t)row * CAKE_MAX_BEST + n];
    best[row].n = n;
}

static int groups(int n, int of)
{
    return (n + of - 1) / of;
}

size_t cake_cuda_best_lists(int n_out)
{
    int n = groups(n_out, MOST);
    return ((size_t)n + (size_t)groups(n, LISTS)) * CAKE_MAX_BEST * sizeof(cake_ranked);
}

void cake_cuda_best(float *score, cake_best *best, int n_out, float cap, int n_tok, void *lists)
{
    int n = groups(n_out, MOST);
    cake_ranked *from = (cake_ranked *)lists, *to = from + (size_t)n * (size_t)n_tok * CAKE_MAX_BEST;
    CAKE_LAUNCH(choose_of_scores, dim3((unsigned)n, (unsigned)n_tok), dim3(THREADS), 0, score, from, best,
                n_out, cap);
    while (n > 1) {
        int fewer = groups(n, LISTS);
        CAKE_LAUNCH(choose_of_lists, dim3((unsigned)fewer, (unsigned)n_tok), dim3(THREADS), 0, to, from, best,
                    n);
        cake_ranked *other = from;
        from = to;
        to = other;
        n = fewer;
    }
    CAKE_LAUNCH(keep, dim3((unsigned)groups(n_tok, THREADS)), dim3(THREADS), 0, best, from, n_tok);
}
