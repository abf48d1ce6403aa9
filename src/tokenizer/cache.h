/* SPDX-License-Identifier: Apache-2.0
 *
 * Pieces that were encoded before, with their ids: texts repeat their words. Threads share one without a
 * lock: a slot is filled once and then only read. What does not fit is not remembered.
 */
#ifndef CAKE_TOKENIZER_CACHE_H
#define CAKE_TOKENIZER_CACHE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

typedef struct cake_cache cake_cache;

#define CAKE_CACHE_KEY 64 /* bytes of the longest piece that is remembered */

/* Owned. Room as the model's number of tokens suggests: few have few words to remember, and open at once. */
cake_cache *cake_cache_open(size_t tokens);
void cake_cache_close(cake_cache *cache);
/* Appends the piece's ids; false: it is not known. len <= CAKE_CACHE_KEY. */
bool cake_cache_get(const cake_cache *cache, const char *piece, size_t len, cake_ids *ids);
/* Remembers ids[0..n) for it, if there is room. */
void cake_cache_put(cake_cache *cache, const char *piece, size_t len, const int32_t *ids, size_t n);

#endif
