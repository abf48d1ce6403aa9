/* SPDX-License-Identifier: Apache-2.0
 *
 * In: scores from the product with the LM head. Out: the leader of each group of CAKE_WARP neighbouring
 * scores of a row, and from these the best of the row (types/topk.h). The best m scores are in the m groups
 * with the best leaders, so most groups are not read again.
 */
#ifndef CAKE_KERNELS_CUDA_TOPK_H
#define CAKE_KERNELS_CUDA_TOPK_H

#include "kernels/cuda/device_util.h"
#include "kernels/kernels.h"

/* Additional outputs of a product with the LM head. */
struct leading {
    cake_ranked *leader; /* [n_row, groups]; NULL: the product is not one with a head */
    cake_topk *best;     /* [n_row] how many are requested; scores that are not finite are recorded there */
    float cap;           /* as cake_kernels.scores has it */
    bool all; /* all scores are stored; else not those of rows of which only the best is asked for */
};

CAKE_ANYWHERE static inline int groups_of_scores(int n_out)
{
    return (n_out + CAKE_WARP - 1) / CAKE_WARP;
}

__device__ __forceinline__ bool before(cake_ranked a, cake_ranked b)
{
    return a.score > b.score || (a.score == b.score && a.id < b.id);
}

/* The entry that sorts after all others. */
__device__ __forceinline__ cake_ranked nothing()
{
    cake_ranked none = {-INFINITY, INT32_MAX};
    return none;
}

__device__ __forceinline__ bool is_whole(float score)
{
    return fabsf(score) <= FLT_MAX;
}

/* The best of all lanes' entries, for all lanes. */
__device__ __forceinline__ cake_ranked best_of_warp(cake_ranked mine)
{
    for (int flip = CAKE_WARP / 2; flip; flip /= 2) {
        cake_ranked other = {__shfl_xor_sync(CAKE_ALL, mine.score, flip),
                             __shfl_xor_sync(CAKE_ALL, mine.id, flip)};
        mine = before(other, mine) ? other : mine;
    }
    return mine;
}

/* Called by a whole warp, whose lanes have a row's scores of one group, from id `first` on; the row has n_out
 * in all. out: where the row's score of id 0 is stored. */
__device__ __forceinline__ void lead(float *out, const leading &to, float score, int row, int first,
                                     int n_out)
{
    const int id = first + (int)threadIdx.x % CAKE_WARP;
    const bool there = id < n_out;
    if (first >= n_out) /* as it is for the whole warp */
        return;
    if (to.cap > 0)
        score = to.cap * tanhf(score / to.cap);
    if (there && !is_whole(score))
        to.best[row].nonfinite = true;
    if (there && (to.all || to.best[row].k > 1))
        out[id] = score;
    cake_ranked mine = {score, id};
    mine = best_of_warp(there && is_whole(score) ? mine : nothing());
    if (id == first)
        to.leader[(int64_t)row * groups_of_scores(n_out) + first / CAKE_WARP] = mine;
}

/* Applies lead to the complete score [n_row, n_out] of a product that does not call it. */
void cake_cuda_lead(float *score, const leading &to, int n_out, int n_row);
/* Finds best [n_row] from the leaders, and from score [n_row, n_out] as far as scores were stored. */
void cake_cuda_topk(const leading &from, const float *score, int n_out, int n_row);

#endif
