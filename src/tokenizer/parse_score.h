/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores of a Unigram model as the `tokenizers` library reads them, not always as the nearest double: this
 * can decide between two segmentations with nearly equal sums.
 */
#ifndef CAKE_TOKENIZER_PARSE_SCORE_H
#define CAKE_TOKENIZER_PARSE_SCORE_H

#include <stddef.h>

/* Reads the JSON number at text; returns its bytes, 0 if there is none or it is too large. Follows serde_json
 * without its feature float_roundtrip (src/de.rs: parse_decimal, parse_exponent, f64_from_parts): the digits
 * that fit 64 bits, rounded to a double, times or divided by a power of ten. */
size_t cake_parse_score(const char *text, size_t len, double *out);

#endif
