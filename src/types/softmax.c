/* SPDX-License-Identifier: Apache-2.0
 *
 * In: scores. Out: the best of them, weights, sums.
 * Invariant: loops have no branches and run a fixed number of times, so that compilers vectorize them for any
 * instruction set; sums use LANES chains, whatever the vectors' width.
 */
#include "types/softmax.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
    LANES = 16,   /* partial sums */
    FEWER = 8,    /* partial maxima */
    GROUP = 64,   /* scores that are weighed together */
    SEARCHED = 16 /* groups that are searched together */
};

#define SMALL      (-120.0f) /* smaller exponents give a weight of 0: such a token is never drawn */
#define MIN_WEIGHT 0x1p-119f

/* 2^x for SMALL <= x <= 0. */
static inline float power(float x)
{
    float shifted = x + 0x1.8p23f; /* rounds to an integer in the low bits */
    float f = x - (shifted - 0x1.8p23f);
    /* 2^f for |f| <= 1/2: the polynomial with value 1 at f = 0 and the smallest relative error, 2e-8, in
     * pairs */
    float f2 = f * f;
    float low = (0x1.62e43p-1f * f + 1) + (0x1.c6aee8p-5f * f + 0x1.ebfbdcp-3f) * f2;
    float high = (0x1.5f3e54p-10f * f + 0x1.3b2d4cp-7f) + 0x1.41fbbap-13f * f2;
    float sum = low + high * (f2 * f2);
    uint32_t bits, exponent;
    memcpy(&bits, &sum, sizeof bits);
    memcpy(&exponent, &shifted, sizeof exponent);
    bits += exponent << 23;
    memcpy(&sum, &bits, sizeof sum);
    return sum;
}

cake_softmax cake_softmax_of(float top, double temperature)
{
    double scale = 0x1.71547652b82fep+0 / temperature; /* log2(e) */
    return (cake_softmax){.top = top,
                          .scale = scale < FLT_MAX ? (float)scale : FLT_MAX,
                          .lowest = SMALL,
                          .min_weight = MIN_WEIGHT};
}

void cake_softmax_cut(cake_softmax *softmax, double min)
{
    softmax->min_weight = min > MIN_WEIGHT ? (float)min : MIN_WEIGHT;
}

/* Not inlined constants: with them gcc makes branches and no vectors. */
static inline float weigh(const cake_softmax softmax, float score)
{
    float x = (score - softmax.top) * softmax.scale;
    float weight = power(x > softmax.lowest ? x : softmax.lowest);
    return weight >= softmax.min_weight ? weight : 0;
}

/* The group at score; if fewer than n are left, a copy padded to [GROUP] with weights of 0. */
static inline const float *group_of(const float *score, int n, float *padded)
{
    if (n >= GROUP)
        return score;
    for (int j = 0; j < GROUP; j++)
        padded[j] = -INFINITY;
    memcpy(padded, score, (size_t)n * sizeof *score);
    return padded;
}

void cake_softmax_weigh(const cake_softmax *softmax, const float *score, int n, double *weight)
{
    const cake_softmax known = *softmax;
    float padded[GROUP], weights[GROUP];
    for (int i = 0; i < n; i += GROUP) {
        int here = n - i < GROUP ? n - i : GROUP;
        const float *group = group_of(score + i, here, padded);
        for (int j = 0; j < GROUP; j++)
            weights[j] = weigh(known, group[j]);
        for (int j = 0; j < here; j++)
            weight[i + j] = weights[j];
    }
}

/* Adds a group to the chains. A chain's few weights are added in float first, without loss. */
static inline void add_group(const cake_softmax softmax, const float *restrict score, double *restrict chain)
{
    float lane[LANES];
    for (int j = 0; j < LANES; j++)
        lane[j] = weigh(softmax, score[j]);
    for (int k = LANES; k < GROUP; k += LANES)
        for (int j = 0; j < LANES; j++)
            lane[j] += weigh(softmax, score[k + j]);
    for (int j = 0; j < LANES; j++)
        chain[j] += lane[j];
}

static double sum_block(const cake_softmax softmax, const float *score, int n)
{
    float padded[GROUP];
    double chain[LANES] = {0}, sum = 0;
    for (int i = 0; i < n; i += GROUP)
        add_group(softmax, group_of(score + i, n - i, padded), chain);
    for (int j = 0; j < LANES; j++)
        sum += chain[j];
    return sum;
}

double cake_softmax_sum(const cake_softmax *softmax, const float *score, int n, double *part)
{
    double sum = 0;
    for (int i = 0; i < n; i += CAKE_SOFTMAX_BLOCK) {
        double block =
            sum_block(*softmax, score + i, n - i < CAKE_SOFTMAX_BLOCK ? n - i : CAKE_SOFTMAX_BLOCK);
        if (part)
            part[i / CAKE_SOFTMAX_BLOCK] = block;
        sum += block;
    }
    return sum;
}

float cake_softmax_max(const float *score, int n)
{
    float lane[FEWER];
    int i = 0;
    for (int j = 0; j < FEWER; j++)
        lane[j] = score[0];
    for (; i + FEWER <= n; i += FEWER)
        for (int j = 0; j < FEWER; j++)
            lane[j] = score[i + j] > lane[j] ? score[i + j] : lane[j];
    for (; i < n; i++)
        lane[0] = score[i] > lane[0] ? score[i] : lane[0];
    for (int half = FEWER / 2; half > 0; half /= 2)
        for (int j = 0; j < half; j++)
            lane[j] = lane[j + half] > lane[j] ? lane[j + half] : lane[j];
    return lane[0];
}

int32_t cake_softmax_argmax(const float *score, int n)
{
    float best = score[0];
    int32_t at = 0;
    for (int i = 0; i < n; i += GROUP * SEARCHED) {
        float top = cake_softmax_max(score + i, n - i < GROUP * SEARCHED ? n - i : GROUP * SEARCHED);
        if (top > best) {
            best = top;
            at = i;
        }
    }
    while (score[at] != best)
        at++;
    return at;
}
