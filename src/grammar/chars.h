/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of characters (code points), and their UTF-8 as ranges of bytes.
 */
#ifndef CAKE_GRAMMAR_CHARS_H
#define CAKE_GRAMMAR_CHARS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CAKE_LAST_CHAR 0x10FFFF

typedef struct cake_char_range {
    uint32_t lo, hi; /* both inclusive */
} cake_char_range;

/* Zeros are the empty set. */
typedef struct cake_chars {
    cake_char_range *range; /* [n] owned */
    size_t n, cap;
} cake_chars;

void cake_chars_add(cake_chars *chars, uint32_t lo, uint32_t hi);
void cake_chars_add_set(cake_chars *chars, const cake_chars *other);
/* The characters for which `is` holds. */
void cake_chars_add_class(cake_chars *chars, bool (*is)(uint32_t code));
/* Sorts and joins ranges, and leaves out surrogates, which are no characters. To be called before a set is
 * read or negated. */
void cake_chars_settle(cake_chars *chars);
/* Becomes all other characters. */
void cake_chars_negate(cake_chars *chars);
void cake_chars_free(cake_chars *chars);

/* Characters whose UTF-8 has n bytes, byte i of which is any of lo[i] to hi[i]. */
typedef struct cake_utf8_range {
    int n;
    uint8_t lo[4], hi[4];
} cake_utf8_range;

/* Calls take for ranges that together are all characters of lo to hi, which has no surrogates. */
void cake_utf8_ranges(uint32_t lo, uint32_t hi, void (*take)(void *self, const cake_utf8_range *range),
                      void *self);

#endif
