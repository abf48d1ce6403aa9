/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores [n_vocab] enter, one token leaves. Defined as: weights exp((score - max) / temperature) in double;
 * tokens ranked by score, the higher first, equal ones by the lower id; top_k keeps the first k; top_p keeps
 * the shortest prefix whose sum reaches top_p of the sum of what top_k kept; the draw walks what is kept in
 * that order, or all tokens by id if neither is on. Invariant: shortcuts below never change that result.
 */
#include "sample/sample.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define BLOCK 4096 /* columns: sums over the vocabulary add blocks, as logits does */

/* exp(x) for x <= 0 from basic operations alone, so that its last bit is the same on every machine; libm's is
 * not. Within an ulp or two of exact; under exp(-700) nothing can be drawn, so it is 0. */
static double weight_of(double x)
{
    if (!(x > -700))
        return 0;
    double shifted = x * 0x1.71547652b82fep+0 + 0x1.8p52; /* log2(e); rounds to an integer */
    double n = shifted - 0x1.8p52;
    double r = x - n * 0x1.62e42fefa3800p-1; /* ln 2 in two parts: the first times n is exact */
    r -= n * 0x1.ef35793c76730p-45;
    static const double inverse_factorial[] = {1.0 / 6227020800,
                                               1.0 / 479001600,
                                               1.0 / 39916800,
                                               1.0 / 3628800,
                                               1.0 / 362880,
                                               1.0 / 40320,
                                               1.0 / 5040,
                                               1.0 / 720,
                                               1.0 / 120,
                                               1.0 / 24,
                                               1.0 / 6,
                                               1.0 / 2,
                                               1.0,
                                               1.0};
    double sum = inverse_factorial[0];
    for (size_t i = 1; i < sizeof inverse_factorial / sizeof *inverse_factorial; i++)
        sum = sum * r + inverse_factorial[i];
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    bits += (uint64_t)(int64_t)n << 52;
    memcpy(&sum, &bits, sizeof sum);
    return sum;
}

static int32_t best_of(const float *score, int n_vocab)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n_vocab; i++)
        if (score[i] > score[best])
            best = i;
    return best;
}

/* Whether token a is ranked before token b. */
static bool before(const float *score, int32_t a, int32_t b)
{
    return score[a] > score[b] || (score[a] == score[b] && a < b);
}

/* Restores the heap below place at. The top is the token ranked last (last) or first (!last). */
static void sift(const float *score, int32_t *heap, int32_t n, int32_t at, bool last)
{
    int32_t token = heap[at];
    for (int32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && before(score, heap[child + 1], heap[child]) != last)
            child++;
        if (before(score, heap[child], token) == last)
            break;
        heap[at] = heap[child];
    }
    heap[at] = token;
}

static void heapify(const float *score, int32_t *heap, int32_t n, bool last)
{
    for (int32_t at = n / 2; at-- > 0;)
        sift(score, heap, n, at, last);
}

/* The k tokens ranked first, in their order: a heap whose top is the worst of those kept so far. Nearly all
 * tokens cost one comparison. */
static void rank_k(const float *score, int n_vocab, int32_t k, int32_t *order)
{
    for (int32_t i = 0; i < k; i++)
        order[i] = i;
    heapify(score, order, k, true);
    for (int32_t i = k; i < n_vocab; i++) {
        if (before(score, i, order[0])) {
            order[0] = i;
            sift(score, order, k, 0, true);
        }
    }
    for (int32_t left = k - 1; left > 0; left--) {
        int32_t worst = order[0];
        order[0] = order[left];
        order[left] = worst;
        sift(score, order, left, 0, true);
    }
}

/* The token at which the running sum of weights passes target. Rounding may leave the target at the very end:
 * then it is the last token that has any weight. */
static int32_t walk(const double *weight, int32_t n, double target)
{
    double reached = 0;
    int32_t last = 0;
    for (int32_t i = 0; i < n; i++) {
        reached += weight[i];
        if (reached > target)
            return i;
        if (weight[i] > 0)
            last = i;
    }
    return last;
}

/* Like walk, block by block. */
static int32_t walk_all(const double *weight, int n_vocab, double target)
{
    double reached = 0;
    int32_t last = 0;
    for (int32_t from = 0; from < n_vocab; from += BLOCK) {
        int32_t n = n_vocab - from < BLOCK ? n_vocab - from : BLOCK;
        double part = 0;
        for (int32_t i = 0; i < n; i++)
            part += weight[from + i];
        if (reached + part > target)
            return from + walk(weight + from, n, target - reached);
        if (part > 0)
            last = from;
        reached += part;
    }
    return last + walk(weight + last, n_vocab - last < BLOCK ? n_vocab - last : BLOCK, INFINITY);
}

/* Weights of all tokens; returns their sum, added in blocks. */
static double weigh(const float *score, int n_vocab, double temperature, double *weight)
{
    double top = score[best_of(score, n_vocab)], sum = 0;
    for (int32_t from = 0; from < n_vocab; from += BLOCK) {
        int32_t to = n_vocab - from < BLOCK ? n_vocab : from + BLOCK;
        double part = 0;
        for (int32_t i = from; i < to; i++) {
            weight[i] = weight_of((score[i] - top) / temperature);
            part += weight[i];
        }
        sum += part;
    }
    return sum;
}

/* How many of the n ranked weights top_p keeps (at least one), and their sum. */
static int32_t prefix(const double *weight, int32_t n, double target, double *sum)
{
    int32_t kept = 0;
    double reached = 0;
    do
        reached += weight[kept++];
    while (kept < n && reached < target);
    *sum = reached;
    return kept;
}

static int32_t sample_top_k(const float *score, int n_vocab, int32_t k, const cake_params *params, double u,
                            double *weight, int32_t *order)
{
    rank_k(score, n_vocab, k, order);
    double sum = 0;
    for (int32_t i = 0; i < k; i++) {
        weight[i] = weight_of(((double)score[order[i]] - score[order[0]]) / params->temperature);
        sum += weight[i];
    }
    if (params->top_p < 1)
        k = prefix(weight, k, params->top_p * sum, &sum);
    return order[walk(weight, k, u * sum)];
}

/* Takes tokens off the heap of candidates, the first ranked first, until their weights reach target. The ranked
 * prefix gathers at the end of order, backwards. Returns its length; *reached is its sum. */
static int32_t rank_until(const float *score, const double *weight, int32_t *order, int32_t n, double target,
                          double *reached)
{
    int32_t left = n;
    heapify(score, order, n, false);
    *reached = 0;
    while (left > 0 && *reached < target) {
        int32_t first = order[0];
        *reached += weight[first];
        left--;
        order[0] = order[left];
        order[left] = first;
        if (left)
            sift(score, order, left, 0, false);
    }
    return n - left;
}

/* Tokens of less than `least` weight are half of what top_p cuts off, all together: they need no ranking. Only
 * where rounding is coarser than that (top_p within 1e-10 of 1) the second pass takes all. */
static int32_t sample_top_p(const float *score, int n_vocab, const cake_params *params, double u,
                            double *weight, int32_t *order)
{
    double sum = weigh(score, n_vocab, params->temperature, weight), reached = 0;
    double target = params->top_p * sum;
    double least = 0.5 * (1 - params->top_p) * sum / n_vocab;
    int32_t n = 0, kept = 0;
    for (int pass = 0; pass < 2; pass++, least = 0) {
        n = 0;
        for (int32_t i = 0; i < n_vocab; i++)
            if (weight[i] >= least)
                order[n++] = i;
        kept = rank_until(score, weight, order, n, target, &reached);
        if (reached >= target)
            break;
    }
    double goal = u * reached, walked = 0;
    for (int32_t i = n - 1; i > n - kept; i--) {
        walked += weight[order[i]];
        if (walked > goal)
            return order[i];
    }
    return order[n - kept];
}

size_t cake_sample_scratch(int n_vocab)
{
    return (size_t)n_vocab * (sizeof(double) + sizeof(int32_t));
}

int32_t cake_sample(const float *score, int n_vocab, const cake_params *params, const cake_key *key,
                    void *scratch)
{
    if (params->temperature == 0)
        return best_of(score, n_vocab);
    double *weight = scratch;
    int32_t *order = (int32_t *)(weight + n_vocab);
    double u = cake_key_uniform(key);
    if (params->top_k > 0 && params->top_k < n_vocab)
        return sample_top_k(score, n_vocab, (int32_t)params->top_k, params, u, weight, order);
    if (params->top_p < 1)
        return sample_top_p(score, n_vocab, params, u, weight, order);
    double sum = weigh(score, n_vocab, params->temperature, weight);
    return walk_all(weight, n_vocab, u * sum);
}
