/* SPDX-License-Identifier: Apache-2.0
 *
 * In: pieces and their ids. Out: the ids when a piece comes again.
 * Invariant: an entry never changes once its slot points at it, and lives as long as the cache.
 */
#include "tokenizer/cache.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tokenizer/vocab.h"

#define MIN_SLOTS       ((size_t)1 << 10) /* minimum number of slots */
#define MOST            ((size_t)1 << 16)
#define PROBES          4 /* slots in which a piece may lie */
#define SLOTS_PER_TOKEN 16

typedef struct entry {
    uint64_t hash;
    uint16_t len, n;
    int32_t id[]; /* [n], followed by the piece, [len] */
} entry;

struct cake_cache {
    size_t mask; /* slots - 1, a power of two minus one */
    _Atomic(entry *) slot[];
};

cake_cache *cake_cache_open(size_t tokens)
{
    size_t slots = MIN_SLOTS;
    while (slots < MOST && slots / SLOTS_PER_TOKEN < tokens)
        slots *= 2;
    cake_cache *cache = cake_alloc(1, sizeof *cache + slots * sizeof *cache->slot);
    cache->mask = slots - 1;
    return cache;
}

void cake_cache_close(cake_cache *cache)
{
    for (size_t i = 0; cache && i <= cache->mask; i++)
        free(atomic_load_explicit(&cache->slot[i], memory_order_relaxed));
    free(cache);
}

bool cake_cache_get(const cake_cache *cache, const char *piece, size_t len, cake_ids *ids)
{
    uint64_t hash = cake_vocab_hash(piece, len);
    for (size_t i = 0; i < PROBES; i++) {
        const entry *e = atomic_load_explicit(&cache->slot[(hash + i) & cache->mask], memory_order_acquire);
        if (!e)
            return false;
        if (e->hash != hash || e->len != len || memcmp(e->id + e->n, piece, len) != 0)
            continue;
        for (size_t k = 0; k < e->n; k++)
            cake_ids_add(ids, e->id[k]);
        return true;
    }
    return false;
}

void cake_cache_put(cake_cache *cache, const char *piece, size_t len, const int32_t *ids, size_t n)
{
    uint64_t hash = cake_vocab_hash(piece, len);
    size_t at = 0;
    if (n > CAKE_CACHE_KEY)
        return;
    while (at < PROBES && atomic_load_explicit(&cache->slot[(hash + at) & cache->mask], memory_order_relaxed))
        at++;
    if (at == PROBES)
        return;
    entry *e = cake_alloc(1, sizeof *e + n * sizeof *ids + len), *expected = NULL;
    e->hash = hash;
    e->len = (uint16_t)len;
    e->n = (uint16_t)n;
    if (n)
        memcpy(e->id, ids, n * sizeof *ids);
    memcpy(e->id + n, piece, len);
    if (!atomic_compare_exchange_strong_explicit(&cache->slot[(hash + at) & cache->mask], &expected, e,
                                                 memory_order_release, memory_order_relaxed))
        free(e); /* another thread was faster */
}
