/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores of a vocabulary and what they weigh: what sampling and log probabilities have in common. Made of
 * basic operations in one order, so that every machine and every width of vectors gives the same bits; libm
 * does not.
 */
#ifndef CAKE_TYPES_SOFTMAX_H
#define CAKE_TYPES_SOFTMAX_H

#include <stdint.h>

#define CAKE_SOFTMAX_BLOCK 4096 /* scores whose weights are summed up for themselves */

/* A score's weight: 2^((score - top) * scale), in float: 2^-x within a share of 2e-7 (1 + x) of it. 0 if that
 * is less than `least` or than 2^-119, or the score is -infinity. The weight of top is 1. */
typedef struct cake_softmax {
    float top, scale;
    float lowest, least;
} cake_softmax;

/* exp((score - top) / temperature); temperature > 0, and with INFINITY all weigh 1. */
cake_softmax cake_softmax_of(float top, double temperature);
/* What weighs less than `least` weighs nothing. */
void cake_softmax_cut(cake_softmax *law, double least);
/* weight [n] of score [n]. */
void cake_softmax_weigh(const cake_softmax *law, const float *score, int n, double *weight);

/* For the next ones no score is NaN, and n > 0. */

float cake_softmax_max(const float *score, int n);
/* The highest score's id, the lowest one of equals. */
int32_t cake_softmax_argmax(const float *score, int n);
/* The sum of the weights of score [n]; those of each block of CAKE_SOFTMAX_BLOCK into part as well, unless it
 * is NULL.
 */
double cake_softmax_sum(const cake_softmax *law, const float *score, int n, double *part);

#endif
