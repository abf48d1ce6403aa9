/* SPDX-License-Identifier: Apache-2.0
 *
 * Patterns that most models have, matched by hand: several times faster than by any engine.
 */
#ifndef CAKE_TOKENIZER_FAST_PATTERNS_H
#define CAKE_TOKENIZER_FAST_PATTERNS_H

#include <stddef.h>

/* The end of the match that begins at text (UTF-8, not empty); these patterns match everywhere. */
typedef size_t (*cake_fast_pattern)(const char *text, size_t len);

/* The function that does what the pattern (in Oniguruma's syntax) does; NULL: it is not one of them. */
cake_fast_pattern cake_fast_pattern_find(const char *pattern, size_t len);

/* GPT-2's, which ByteLevel brings along. */
extern const char cake_known_gpt2[];

#endif
