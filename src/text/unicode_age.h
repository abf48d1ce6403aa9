/* SPDX-License-Identifier: Apache-2.0
 *
 * Since when a character is one. Each part of the `tokenizers` library knows the version of Unicode that it
 * was built with; these are the versions that its release 0.23 shows.
 */
#ifndef CAKE_TEXT_UNICODE_AGE_H
#define CAKE_TEXT_UNICODE_AGE_H

#include <stdint.h>

#include "base/buf.h"

#define CAKE_AGE_LATEST   17 /* Rust's own: numbers, white space, cases */
#define CAKE_AGE_PATTERN  16 /* patterns, and what is a word to an added token */
#define CAKE_AGE_FORM     9  /* normal forms and combining marks */
#define CAKE_AGE_CATEGORY 8  /* punctuation, control characters, nonspacing marks */

/* The version of Unicode that brought the character, with its category (in the order of Lu Ll Lt Lm Lo Mn Mc
 * Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co from 1); 0: version 8 or before, or none
 * yet. */
int cake_age_find(uint32_t code, int *category);

/* Appends, as members of a character class, what patterns know and PCRE2 may not: characters of these
 * categories (a bit each) that Unicode 15 and 16 brought. */
void cake_age_add_class(uint32_t categories, cake_buf *out);

#endif
