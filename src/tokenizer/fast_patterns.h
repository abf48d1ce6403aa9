/* SPDX-License-Identifier: Apache-2.0
 *
 * Patterns of most models, matched by hand: several times faster than by a regex engine.
 */
#ifndef CAKE_TOKENIZER_FAST_PATTERNS_H
#define CAKE_TOKENIZER_FAST_PATTERNS_H

#include <stddef.h>

/* The end of the match at text (UTF-8, not empty); these patterns match everywhere. */
typedef size_t (*cake_fast_pattern)(const char *text, size_t len);

/* The function equivalent to the pattern (in Oniguruma's syntax); NULL: none. */
cake_fast_pattern cake_fast_pattern_find(const char *pattern, size_t len);

/* GPT-2's pattern, the default of ByteLevel. */
extern const char cake_fast_pattern_gpt2[];

#endif
