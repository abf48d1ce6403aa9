/* SPDX-License-Identifier: Apache-2.0
 *
 * The formats of JSON Schema as patterns.
 */
#ifndef CAKE_GRAMMAR_STRING_FORMATS_H
#define CAKE_GRAMMAR_STRING_FORMATS_H

#include <stdbool.h>

/* The pattern of whole texts; NULL: the format is unknown, and means nothing; *supported is false for one of
 * the standard that has no pattern here. */
const char *cake_string_format(const char *name, bool *supported);

/* The most characters that texts of the format have besides; 0: the pattern says all. */
int cake_string_format_most(const char *name);

#endif
