/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a text, token by token. Out: earlier places like its end.
 * Invariant: places of one hash form a list from the latest to the first.
 */
#include "engine/ngrams.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { MOST_PLACES = 64 /* that are looked at */, SMALLEST = 256 };

static size_t slot_of(const cake_ngrams *g, const int32_t *last)
{
    uint64_t hash = 0;
    for (int i = 0; i < CAKE_NGRAM; i++)
        hash = (hash ^ (uint32_t)last[-i]) * 0x9E3779B97F4A7C15ull;
    return (size_t)(hash >> 32) & (g->n_latest - 1);
}

static void put(cake_ngrams *g, const int32_t *text, size_t at)
{
    const size_t slot = slot_of(g, text + at);
    g->before[at] = g->latest[slot];
    g->latest[slot] = (int32_t)at + 1;
}

/* Twice as many hashes as tokens, so that lists hold little else than equal places. */
static void grow(cake_ngrams *g, const int32_t *text, size_t n)
{
    size_t cap = g->cap ? g->cap : SMALLEST;
    while (cap < n)
        cap *= 2;
    if (cap == g->cap)
        return;
    free(g->latest);
    g->n_latest = 2 * cap;
    g->latest = cake_alloc(g->n_latest, sizeof *g->latest);
    g->before = cake_grow(g->before, cap, sizeof *g->before);
    g->cap = cap;
    for (size_t i = CAKE_NGRAM - 1; i < g->n; i++)
        put(g, text, i);
}

void cake_ngrams_add(cake_ngrams *g, const int32_t *text, size_t n)
{
    grow(g, text, n);
    for (size_t i = g->n < CAKE_NGRAM - 1 ? CAKE_NGRAM - 1 : g->n; i < n; i++)
        put(g, text, i);
    g->n = n;
}

void cake_ngrams_clear(cake_ngrams *g)
{
    if (g->n)
        memset(g->latest, 0, g->n_latest * sizeof *g->latest);
    g->n = 0;
}

void cake_ngrams_free(cake_ngrams *g)
{
    free(g->latest);
    free(g->before);
    *g = (cake_ngrams){0};
}

/* How many tokens up to text[at] are those up to the end of ids [n]. */
static int common(const int32_t *text, size_t at, const int32_t *ids, size_t n)
{
    int len = 0;
    while (len < CAKE_NGRAM_MATCH && (size_t)len <= at && (size_t)len < n &&
           text[at - (size_t)len] == ids[n - 1 - (size_t)len])
        len++;
    return len;
}

int cake_ngrams_match(const cake_ngrams *g, const int32_t *text, const int32_t *ids, size_t n, size_t *next)
{
    int longest = 0, places = 0;
    if (n < CAKE_NGRAM || !g->n)
        return 0;
    for (int32_t at = g->latest[slot_of(g, ids + n - 1)];
         at && places < MOST_PLACES && longest < CAKE_NGRAM_MATCH; at = g->before[at - 1], places++) {
        const int len = (size_t)at < g->n ? common(text, (size_t)at - 1, ids, n) : 0;
        if (len > longest) {
            longest = len;
            *next = (size_t)at;
        }
    }
    return longest >= CAKE_NGRAM ? longest : 0;
}
