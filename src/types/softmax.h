/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores of a vocabulary and their weights, for sampling and log probabilities. Basic operations in one fixed
 * order give the same bits on every machine and with every vector width; libm does not.
 */
#ifndef CAKE_TYPES_SOFTMAX_H
#define CAKE_TYPES_SOFTMAX_H

#include <stdint.h>

#define CAKE_SOFTMAX_BLOCK 4096 /* scores with a partial sum of their own */

/* A score's weight is 2^((score - top) * scale), in float, with a relative error below 2e-7 (1 + x) for 2^-x.
 * It is 0 below min_weight or 2^-119, and for a score of -infinity. The weight of top is 1. */
typedef struct cake_softmax {
    float top, scale;
    float lowest, min_weight;
} cake_softmax;

/* Weights exp((score - top) / temperature); temperature > 0, INFINITY gives all the weight 1. */
cake_softmax cake_softmax_of(float top, double temperature);
/* Weights below min become 0. */
void cake_softmax_cut(cake_softmax *softmax, double min);
/* weight [n] of score [n]. */
void cake_softmax_weigh(const cake_softmax *softmax, const float *score, int n, double *weight);

/* The next functions require n > 0 and no NaN. */

float cake_softmax_max(const float *score, int n);
/* The id of the highest score, the lowest id among equals. */
int32_t cake_softmax_argmax(const float *score, int n);
/* The sum of the weights of score [n]; part, unless NULL, gets the sums of the blocks of
 * CAKE_SOFTMAX_BLOCK. */
double cake_softmax_sum(const cake_softmax *softmax, const float *score, int n, double *part);

#endif
