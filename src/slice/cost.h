/* SPDX-License-Identifier: Apache-2.0
 *
 * What a slice has to do for a wave, in operations and bytes, whatever the kernels make of it: products (two
 * operations a weight and row), attention (q k^T and p v over the positions that a row sees), the delta rule
 * (k S, k^T v and q S); weights read once a wave, K and V of a sequence read once (but what stands in the
 * same pages as for the sequence before it in the wave) and those of its rows written, states read and
 * written. Of rows that nobody reads the model's last layer has K and V only. Norms, activations and what a
 * wave carries are left out: they stay in caches.
 */
#ifndef CAKE_SLICE_COST_H
#define CAKE_SLICE_COST_H

#include <stdbool.h>

#include "kernels/kernels.h"
#include "kernels/roofline.h"
#include "model/model.h"
#include "types/wave.h"

typedef struct cake_cost {
    double balance;        /* operations that take as long as moving a byte: makes the two comparable */
    double row_flops;      /* products and states, a row */
    double wave_bytes;     /* weights, a wave */
    double sequence_bytes; /* states, a sequence */
    int n_group;
    struct {
        int window;                            /* positions that a row sees; 0: all */
        double position_flops, position_bytes; /* all layers of the group, a position */
    } kv[CAKE_MAX_KV_GROUPS];
    struct {
        int group;
        double row_flops, position_flops;
    } no_output; /* what the model's last layer saves for a row that nobody reads behind it; zeros: nothing */
} cake_cost;

/* The balance of a processor of which nothing is known. */
#define CAKE_COST_BALANCE 16.0

/* The cost of layers [first, first + count), which need not be loaded, at CAKE_COST_BALANCE. */
cake_cost cake_cost_of_layers(const cake_model *model, const cake_kernels *kernels, int first, int count,
                              cake_dtype kv_dtype);
/* What a wave costs. Rows of one sequence stand together, positions upwards. kv [n_group]: tables and
 * windows, to find what sequences share; NULL: they share nothing. */
cake_flops_bytes cake_cost_of_wave(const cake_cost *cost, const cake_kv *kv, const cake_row *rows, int n_tok);

/* What a row at a position costs as one of many in a wave, in operations; and what each position of a group
 * that it sees adds to that. Rows of a prompt share the K, V and state that they read, other rows read their
 * own. */
double cake_cost_row(const cake_cost *cost, int pos, bool prompt);
double cake_cost_seen(const cake_cost *cost, int group, bool prompt);
/* What the scores of a row cost: the head, and looking at each score when the token is drawn. */
double cake_cost_scores(const cake_config *config);

#endif
