/* SPDX-License-Identifier: Apache-2.0
 *
 * The age of characters. Each part of the `tokenizers` library knows the version of Unicode that it was built
 * with; these are the versions of its release 0.23.
 */
#ifndef CAKE_TEXT_UNICODE_AGE_H
#define CAKE_TEXT_UNICODE_AGE_H

#include <stdint.h>

#include "base/buf.h"

#define CAKE_AGE_LATEST   17 /* Rust's std: numbers, white space, cases */
#define CAKE_AGE_PATTERN  16 /* patterns, and word characters next to added tokens */
#define CAKE_AGE_FORM     9  /* normal forms and combining marks */
#define CAKE_AGE_CATEGORY 8  /* punctuation, control characters, nonspacing marks */

/* The version of Unicode that introduced the character, and its category (from 1, as categories.def has
 * them); 0: version 8 or before, or unassigned. */
int cake_age_find(uint32_t code, int *category);

/* Appends to a character class the characters of these categories (a bit each) that Unicode 15 and 16
 * introduced: patterns know them, PCRE2 may not. */
void cake_age_add_class(uint32_t categories, cake_buf *out);

#endif
