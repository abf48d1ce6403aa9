/* SPDX-License-Identifier: Apache-2.0
 *
 * The work of a slice for a wave in operations and bytes, independent of kernels. Counted are products
 * (two operations per weight and row, of experts those that a row meets), attention (q k^T and p v over
 * visible positions), and the delta rule (k S, k^T v and q S); weights read once per wave, of experts
 * those that its rows are expected to meet; K and V of a sequence read once (pages shared with the
 * previous sequence of the wave not again) and written for its rows; states read and written. For rows
 * without output the model's last layer computes K and V only. Norms, activations and the wave itself are
 * not counted: they stay in caches.
 */
#ifndef CAKE_SLICE_COST_H
#define CAKE_SLICE_COST_H

#include <stdbool.h>

#include "kernels/kernels.h"
#include "kernels/roofline.h"
#include "model/model.h"
#include "types/wave.h"

typedef struct cake_cost {
    double balance;         /* operations in the time of moving one byte: makes the two comparable */
    double row_flops;       /* products and states, per row */
    double wave_bytes;      /* weights, per wave, without experts */
    double expert_bytes;    /* of one expert in each layer that has experts */
    int n_expert, n_chosen; /* experts of a layer, and of a row; 0: none */
    double sequence_bytes;  /* states, per sequence */
    int n_kv_group;
    bool both_ways; /* rows see later positions of their prompt, too */
    struct {
        int window;                            /* positions visible to a row; 0: all */
        double position_flops, position_bytes; /* all layers of the group, per position */
    } kv[CAKE_MAX_KV_GROUPS];
    struct {
        int group;
        double row_flops, position_flops;
    } no_output; /* saved by the model's last layer for a row without output; zeros: nothing */
} cake_cost;

/* Balance of an unknown processor. */
#define CAKE_COST_BALANCE 16.0

/* The cost of layers [first, first + count), which need not be loaded, at CAKE_COST_BALANCE. */
cake_cost cake_cost_of_layers(const cake_model *model, const cake_kernels *kernels, int first, int count,
                              cake_dtype kv_dtype);
/* Weights read by a wave of n rows. Of E experts, k of which are chosen for a row, independent rows meet
 * E (1 - (1 - k / E)^n). */
double cake_cost_weight_bytes(const cake_cost *cost, double n_row);
/* The share of the experts that they meet. */
double cake_cost_met_experts(const cake_cost *cost, double n_row);
/* The cost of a wave. Rows of one sequence are contiguous with ascending positions. kv [n_kv_group]: tables
 * and windows, to find what sequences share; NULL: nothing is shared. */
cake_flops_bytes cake_cost_of_wave(const cake_cost *cost, const cake_kv *kv, const cake_row *rows, int n_row);

/* Operations of a row at a position, as one of many in a wave; and the increment per visible position of a
 * group. Prompt rows share the K, V and state that they read; other rows read their own. */
double cake_cost_row(const cake_cost *cost, int pos, bool prompt);
double cake_cost_seen(const cake_cost *cost, int group, bool prompt);
/* Operations for the scores of a row: the head, and sampling over all scores. */
double cake_cost_scores(const cake_config *config);

#endif
