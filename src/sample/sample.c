/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores [n_vocab] enter, one token leaves. Defined as: weights exp((score - max) / temperature) in double;
 * tokens ranked by score, the higher first, equal ones by the lower id; top_k keeps the first k; top_p keeps
 * the shortest prefix whose sum reaches top_p of the sum of what top_k kept; min_p keeps of that what weighs
 * min_p of the first or more; the draw walks what is kept in that order, or by id if neither top_k nor top_p
 * is on. A score of -infinity is a token that cannot be drawn. Invariant: shortcuts below never change that
 * result.
 */
#include "sample/sample.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define BLOCK  4096 /* columns: sums over the vocabulary add blocks, as logits does */
#define LANES  8
#define HEAP_K 256 /* up to this top_k a heap is faster than sorting */
#define BITS   11  /* of a digit; three make a key */

/* What is sorted: the higher the score, the lower the key. */
typedef struct ranked {
    uint32_t key;
    int32_t id;
} ranked;

/* exp(x) for x <= 0 from basic operations alone, so that its last bit is the same on every machine; libm's is
 * not. Within an ulp or two of exact; under exp(-700) nothing can be drawn, so it is 0. No branches: compilers
 * turn the loops around it into vectors. */
static inline double weight_of(double x)
{
    double y = x > -700 ? x : -700;
    double shifted = y * 0x1.71547652b82fep+0 + 0x1.8p52; /* log2(e); rounds to an integer, in the low bits */
    double n = shifted - 0x1.8p52;
    double r = y - n * 0x1.62e42fefa3800p-1; /* ln 2 in two parts: the first times n is exact */
    r -= n * 0x1.ef35793c76730p-45;
    double sum = 1.0 / 6227020800;
    sum = sum * r + 1.0 / 479001600;
    sum = sum * r + 1.0 / 39916800;
    sum = sum * r + 1.0 / 3628800;
    sum = sum * r + 1.0 / 362880;
    sum = sum * r + 1.0 / 40320;
    sum = sum * r + 1.0 / 5040;
    sum = sum * r + 1.0 / 720;
    sum = sum * r + 1.0 / 120;
    sum = sum * r + 1.0 / 24;
    sum = sum * r + 1.0 / 6;
    sum = sum * r + 0.5;
    sum = sum * r + 1;
    sum = sum * r + 1;
    uint64_t bits, exponent;
    memcpy(&bits, &sum, sizeof bits);
    memcpy(&exponent, &shifted, sizeof exponent);
    bits += exponent << 52;
    memcpy(&sum, &bits, sizeof sum);
    return x > -700 ? sum : 0;
}

/* The highest score; LANES chains, since one would wait for each comparison. */
static float highest(const float *score, int n_vocab)
{
    float lane[LANES];
    int i = 0;
    for (int j = 0; j < LANES; j++)
        lane[j] = score[0];
    for (; i + LANES <= n_vocab; i += LANES)
        for (int j = 0; j < LANES; j++)
            lane[j] = score[i + j] > lane[j] ? score[i + j] : lane[j];
    for (; i < n_vocab; i++)
        lane[0] = score[i] > lane[0] ? score[i] : lane[0];
    for (int j = 1; j < LANES; j++)
        lane[0] = lane[j] > lane[0] ? lane[j] : lane[0];
    return lane[0];
}

static int32_t best_of(const float *score, int n_vocab)
{
    float top = highest(score, n_vocab);
    int32_t best = 0;
    while (best < n_vocab - 1 && score[best] != top)
        best++;
    return best;
}

/* Whether token a is ranked before token b. */
static bool before(const float *score, int32_t a, int32_t b)
{
    return score[a] > score[b] || (score[a] == score[b] && a < b);
}

/* Restores the heap below place at: its top is the token ranked last. */
static void sift(const float *score, int32_t *heap, int32_t n, int32_t at)
{
    int32_t token = heap[at];
    for (int32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && before(score, heap[child], heap[child + 1]))
            child++;
        if (before(score, heap[child], token))
            break;
        heap[at] = heap[child];
    }
    heap[at] = token;
}

/* The k tokens ranked first, in their order: a heap whose top is the worst of those kept so far. Nearly all
 * tokens cost one comparison. */
static void rank_few(const float *score, int n_vocab, int32_t k, int32_t *order)
{
    for (int32_t i = 0; i < k; i++)
        order[i] = i;
    for (int32_t at = k / 2; at-- > 0;)
        sift(score, order, k, at);
    float worst = score[order[0]];
    for (int32_t i = k; i < n_vocab; i++) {
        if (score[i] > worst) { /* an equal one has the higher id */
            order[0] = i;
            sift(score, order, k, 0);
            worst = score[order[0]];
        }
    }
    for (int32_t left = k - 1; left > 0; left--) {
        int32_t last = order[0];
        order[0] = order[left];
        order[left] = last;
        sift(score, order, left, 0);
    }
}

static ranked rank_of(const float *score, int32_t id)
{
    float value = score[id] + 0.0f; /* -0 and 0 are one score */
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (ranked){.key = bits >> 31 ? bits : ~(bits | 0x80000000u), .id = id};
}

/* Sorts by key, digit by digit from the lowest; equal keys stay in the order of ids in which they come. Three
 * digits: the result is in to, and from is free. Of few, counting digits would take longer than all else. */
static void rank_all(ranked *from, ranked *to, int32_t n)
{
    if (n <= 64) {
        for (int32_t i = 0, at; i < n; i++) {
            for (at = i; at > 0 && to[at - 1].key > from[i].key; at--)
                to[at] = to[at - 1];
            to[at] = from[i];
        }
        return;
    }
    for (int shift = 0; shift < 3 * BITS; shift += BITS) {
        int32_t count[1 << BITS] = {0}, place = 0;
        for (int32_t i = 0; i < n; i++)
            count[from[i].key >> shift & ((1 << BITS) - 1)]++;
        for (int32_t digit = 0; digit < 1 << BITS; digit++) {
            int32_t here = count[digit];
            count[digit] = place;
            place += here;
        }
        for (int32_t i = 0; i < n; i++)
            to[count[from[i].key >> shift & ((1 << BITS) - 1)]++] = from[i];
        ranked *swap = from;
        from = to;
        to = swap;
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

/* Weights of all tokens, 0 for those below `least`; returns their sum, added in blocks. */
static double weigh(const float *score, int n_vocab, double temperature, double least, double *weight)
{
    double top = highest(score, n_vocab), sum = 0;
    int32_t i = 0;
    for (; i + LANES <= n_vocab; i += LANES)
        for (int j = 0; j < LANES; j++)
            weight[i + j] = weight_of((score[i + j] - top) / temperature);
    for (; i < n_vocab; i++)
        weight[i] = weight_of((score[i] - top) / temperature);
    for (i = 0; least > 0 && i < n_vocab; i++)
        weight[i] = weight[i] < least ? 0 : weight[i];
    for (int32_t from = 0; from < n_vocab; from += BLOCK) {
        int32_t to = n_vocab - from < BLOCK ? n_vocab : from + BLOCK;
        double part = 0;
        for (i = from; i < to; i++)
            part += weight[i];
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

/* Room for one request: see cake_sample_scratch. */
typedef struct workspace {
    double *weight;         /* [n_vocab] */
    ranked *ranked, *other; /* [n_vocab] */
    int32_t *order;         /* [n_vocab] in ranked's place, which is free when it is written */
} workspace;

static int32_t sample_top_k(const float *score, int n_vocab, int32_t k, const cake_params *params, double u,
                            const workspace *room)
{
    if (k <= HEAP_K) {
        rank_few(score, n_vocab, k, room->order);
    } else {
        for (int32_t i = 0; i < n_vocab; i++)
            room->ranked[i] = rank_of(score, i);
        rank_all(room->ranked, room->other, n_vocab);
        for (int32_t i = 0; i < k; i++)
            room->order[i] = room->other[i].id;
    }
    double sum = 0;
    for (int32_t i = 0; i < k; i++) {
        room->weight[i] =
            weight_of(((double)score[room->order[i]] - score[room->order[0]]) / params->temperature);
        sum += room->weight[i];
    }
    if (params->top_p < 1)
        k = prefix(room->weight, k, params->top_p * sum, &sum);
    if (room->weight[k - 1] < params->min_p) {
        while (room->weight[k - 1] < params->min_p)
            k--;
        k = prefix(room->weight, k, INFINITY, &sum);
    }
    return room->order[walk(room->weight, k, u * sum)];
}

/* Tokens of less than `least` weight are half of what top_p cuts off, all together: they need no ranking. Only
 * where rounding is coarser than that (top_p within 1e-10 of 1) the second pass takes all. */
static int32_t sample_top_p(const float *score, int n_vocab, const cake_params *params, double u,
                            const workspace *room)
{
    const double *weight = room->weight;
    double sum = weigh(score, n_vocab, params->temperature, 0, room->weight), reached = 0;
    double target = params->top_p * sum;
    double least = 0.5 * (1 - params->top_p) * sum / n_vocab;
    const ranked *sorted = room->other;
    int32_t kept = 0;
    for (int pass = 0; pass < 2 && reached < target; pass++, least = 0) {
        int32_t n = 0;
        for (int32_t i = 0; i < n_vocab; i++)
            if (weight[i] >= least)
                room->ranked[n++] = rank_of(score, i);
        rank_all(room->ranked, room->other, n);
        for (kept = 0, reached = 0; kept < n && reached < target; kept++)
            reached += weight[sorted[kept].id];
    }
    if (weight[sorted[kept - 1].id] < params->min_p) {
        for (kept = 0, reached = 0; weight[sorted[kept].id] >= params->min_p; kept++)
            reached += weight[sorted[kept].id];
    }
    double goal = u * reached, walked = 0;
    for (int32_t i = 0; i < kept - 1; i++) {
        walked += weight[sorted[i].id];
        if (walked > goal)
            return sorted[i].id;
    }
    return sorted[kept - 1].id;
}

size_t cake_sample_scratch(int n_vocab)
{
    return (size_t)n_vocab * (sizeof(double) + 2 * sizeof(ranked));
}

int32_t cake_sample(const float *score, int n_vocab, const cake_params *params, const cake_key *key,
                    void *scratch)
{
    if (params->temperature == 0 || highest(score, n_vocab) == -INFINITY)
        return best_of(score, n_vocab);
    workspace room = {.weight = scratch};
    room.ranked = (ranked *)(room.weight + n_vocab);
    room.other = room.ranked + n_vocab;
    room.order = (int32_t *)room.ranked;
    double u = cake_key_uniform(key);
    if (params->top_k > 0 && params->top_k < n_vocab)
        return sample_top_k(score, n_vocab, (int32_t)params->top_k, params, u, &room);
    if (params->top_p < 1)
        return sample_top_p(score, n_vocab, params, u, &room);
    double sum = weigh(score, n_vocab, params->temperature, params->min_p, room.weight);
    return walk_all(room.weight, n_vocab, u * sum);
}
