/* SPDX-License-Identifier: Apache-2.0
 *
 * The best of a row's scores, as many as anybody wants to know: the product with the head finds them,
 * sampling draws from them. Invariant: what is held does not depend on the order in which scores come.
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
    int32_t most;                    /* are held, 1 to CAKE_MAX_TOPK */
    int32_t n;                       /* so far */
    bool nonfinite;                  /* there is a score that is NaN or infinite */
    cake_ranked held[CAKE_MAX_TOPK]; /* [n] the highest score first, of equal ones the lowest id */
} cake_topk;

/* Nothing is known yet. */
static inline void cake_topk_clear(cake_topk *best, int most)
{
    best->most = most;
    best->n = 0;
    best->nonfinite = false;
}

static inline bool cake_ranked_before(cake_ranked a, cake_ranked b)
{
    return a.score > b.score || (a.score == b.score && a.id < b.id);
}

/* What is lower is not held. */
static inline float cake_topk_least(const cake_topk *best)
{
    return best->n < best->most ? -INFINITY : best->held[best->n - 1].score;
}

static inline void cake_topk_add(cake_topk *best, cake_ranked token)
{
    if (!(token.score >= cake_topk_least(best))) /* NaN, too */
        return;
    int at = best->n;
    if (at < best->most)
        best->n++;
    else if (!cake_ranked_before(token, best->held[--at]))
        return;
    for (; at > 0 && cake_ranked_before(token, best->held[at - 1]); at--)
        best->held[at] = best->held[at - 1];
    best->held[at] = token;
}

/* What holds for some scores becomes what holds for others, too. */
static inline void cake_topk_join(cake_topk *best, const cake_topk *other)
{
    best->nonfinite |= other->nonfinite;
    for (int i = 0; i < other->n; i++)
        cake_topk_add(best, other->held[i]);
}

#endif
