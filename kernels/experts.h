/* SPDX-License-Identifier: Apache-2.0
 *
 * Mixtures of experts (Shazeer et al. 2017): a router chooses a few of a layer's experts for each row, and a
 * row meets the matrices of its experts only. In: router scores of a wave. Out: each row's choice, and all
 * choices sorted by expert, so that one product serves all rows of an expert.
 */
#ifndef CAKE_KERNELS_EXPERTS_H
#define CAKE_KERNELS_EXPERTS_H

#include <stdbool.h>

#include "kernels/tensor.h"

#define CAKE_MAX_EXPERTS 4096 /* of a layer */
#define CAKE_MAX_CHOSEN  64   /* for a row */

/* The matrices of one kind of all experts of a layer. */
typedef struct cake_experts {
    cake_weight w;     /* of expert 0; expert e's data are e * step bytes further */
    int64_t step;      /* bytes, a multiple of CAKE_ALIGN */
    void **at;         /* [n] the data of each expert, if they do not lie like this; or NULL */
    int n;             /* experts */
    const float *bias; /* [n, w.n_out], or NULL */
} cake_experts;

static inline void *cake_expert_data(const cake_experts *experts, int64_t expert)
{
    return experts->at ? experts->at[expert] : (char *)experts->w.data + expert * experts->step;
}

/* How scores become the weights of experts. */
typedef enum cake_router_score {
    CAKE_ROUTER_SOFTMAX,       /* softmax over all experts */
    CAKE_ROUTER_TOPK_SOFTMAX,  /* the best scores are chosen, softmax over these */
    CAKE_ROUTER_SIGMOID,       /* 1 / (1 + exp(-s)) */
    CAKE_ROUTER_SQRT_SOFTPLUS, /* sqrt(log(1 + exp(s))) */
    CAKE_N_ROUTER_SCORE
} cake_router_score;

/* A router. A weight is the score's value, of the chosen experts only. Experts are chosen by this value plus
 * bias, ties by the lowest id; a group of consecutive experts competes by the sum of its best ones, and only
 * experts of the best groups can be chosen. Then, in this order: the chosen weights are divided by their sum
 * plus epsilon (if renormalised), multiplied by scale and by expert_scale. */
typedef struct cake_router {
    int n_expert, n_chosen;
    cake_router_score score;
    int n_group, n_group_chosen; /* 1, 1: no groups. n_group divides n_expert */
    int group_best;              /* a group's score: the sum of so many of its best values */
    bool renormalise;
    float epsilon, scale;
    const float *bias;         /* [n_expert], for the choice only; or NULL */
    const float *expert_scale; /* [n_expert], or NULL */
} cake_router;

/* The choices of a wave, sorted by expert. Group i has the sorted rows [first[i], first[i + 1]), which belong
 * to expert[i]. */
typedef struct cake_groups {
    int n;           /* groups; each has at least one row */
    int n_sorted;    /* sorted rows: n_row * n_chosen */
    int32_t *expert; /* [n_expert] ascending */
    int32_t *first;  /* [n_expert + 1] */
    int32_t *row;    /* [n_sorted] the wave's row that a sorted row was taken from; ascending in a group */
    int32_t *sorted; /* [n_row, stride] the sorted row of each choice */
    int stride;      /* of a row's choices; columns from n_chosen on belong to the caller */
} cake_groups;

/* How rows met experts: sums over visits, each of a wave to a layer with experts. Zero-initialised: none. */
typedef struct cake_expert_use {
    int64_t visits;
    double distinct;                      /* experts that at least one row met */
    double min_rows, mean_rows, max_rows; /* of an expert */
    /* of all waves: rows; bytes of weights read, by the experts that were met; that independent rows would
     * have read */
    double rows, weight_bytes, expected_bytes;
} cake_expert_use;

struct cake_exec;

/* score [n_row, n_expert], which is changed, to expert [n_row, stride], ascending in a row, and weight
 * [n_row, stride]; n_chosen columns of each are written. Scores that are not finite give weights that are not
 * finite. */
void cake_router_choose(const struct cake_exec *exec, const cake_router *router, float *score,
                        int32_t *expert, float *weight, int stride, int n_row);
/* Sorts the choices of all rows, expert [n_row, groups->stride]; called by one member. */
void cake_groups_sort(cake_groups *groups, const int32_t *expert, int n_row, const cake_router *router);

/* Adds a visit of n_expert experts. */
void cake_expert_use_visit(cake_expert_use *use, const cake_groups *groups, int n_expert);
void cake_expert_use_merge(cake_expert_use *use, const cake_expert_use *other);

#endif
