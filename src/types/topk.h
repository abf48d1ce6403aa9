/* SPDX-License-Identifier: Apache-2.0
 *
 * The best k scores of a row: the product with the head finds them, sampling draws from them.
 * Invariant: the result does not depend on the order in which scores come.
 */
#ifndef CAKE_TYPES_TOPK_H
#define CAKE_TYPES_TOPK_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define CAKE_MAX_TOPK 64

typedef struct cake_ranked {
    float score;
    int32_t id;
} cake_ranked;

typedef struct cake_topk {
    int32_t k;                       /* how many to hold, 1 to CAKE_MAX_TOPK */
    int32_t n;                       /* held so far */
    bool nonfinite;                  /* some score is NaN or infinite */
    const uint64_t *allowed;         /* a bit for each id that may be held, on the CPU; NULL: all */
    cake_ranked held[CAKE_MAX_TOPK]; /* [n] highest score first, lowest id first among equals */
} cake_topk;

/* Starts with no scores, and all ids allowed. */
static inline void cake_topk_clear(cake_topk *best, int k)
{
    best->k = k;
    best->n = 0;
    best->nonfinite = false;
    best->allowed = NULL;
}

static inline bool cake_ranked_before(cake_ranked a, cake_ranked b)
{
    return a.score > b.score || (a.score == b.score && a.id < b.id);
}

/* The score that a new one must reach. */
static inline float cake_topk_min(const cake_topk *best)
{
    return best->n < best->k ? -INFINITY : best->held[best->n - 1].score;
}

static inline void cake_topk_add(cake_topk *best, cake_ranked token)
{
    if (!(token.score >= cake_topk_min(best))) /* also for NaN */
        return;
    if (best->allowed && !(best->allowed[token.id / 64] >> token.id % 64 & 1))
        return;
    int at = best->n;
    if (at < best->k)
        best->n++;
    else if (!cake_ranked_before(token, best->held[--at]))
        return;
    for (; at > 0 && cake_ranked_before(token, best->held[at - 1]); at--)
        best->held[at] = best->held[at - 1];
    best->held[at] = token;
}

/* Merges the scores of another part of the row. */
static inline void cake_topk_join(cake_topk *best, const cake_topk *other)
{
    best->nonfinite |= other->nonfinite;
    for (int i = 0; i < other->n; i++)
        cake_topk_add(best, other->held[i]);
}

#endif
