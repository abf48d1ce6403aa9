/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores of a Unigram model as the `tokenizers` library reads them, which is not always the nearest double:
 * it decides which of two segmentations wins where their sums are equal but for that.
 */
#ifndef CAKE_TOKENIZER_PARSE_SCORE_H
#define CAKE_TOKENIZER_PARSE_SCORE_H

#include <stddef.h>

/* The JSON number that text begins with: its bytes; 0: there is none, or it is too large. The rule is that of
 * serde_json without its feature float_roundtrip (src/de.rs: parse_decimal, parse_exponent, f64_from_parts):
 * the digits that fit 64 bits, rounded to a double, times or divided by a power of ten. */
size_t cake_parse_score(const char *text, size_t len, double *out);

#endif
