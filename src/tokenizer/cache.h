/* SPDX-License-Identifier: Apache-2.0
 *
 * A cache of encoded pieces, since texts repeat their words. Threads share it without a lock: a slot is
 * filled once and then only read. Pieces that do not fit are not cached.
 */
#ifndef CAKE_TOKENIZER_CACHE_H
#define CAKE_TOKENIZER_CACHE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

typedef struct cake_cache cake_cache;

#define CAKE_CACHE_KEY 64 /* maximum bytes of a cached piece */

/* Owned. Sized by the model's number of tokens, so that small models open at once. */
cake_cache *cake_cache_open(size_t tokens);
void cake_cache_close(cake_cache *cache);
/* Appends the piece's ids; false: not cached. len <= CAKE_CACHE_KEY. */
bool cake_cache_get(const cake_cache *cache, const char *piece, size_t len, cake_ids *ids);
/* Caches ids[0..n) for the piece if a slot is free. */
void cake_cache_put(cake_cache *cache, const char *piece, size_t len, const int32_t *ids, size_t n);

#endif
