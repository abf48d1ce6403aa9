/* SPDX-License-Identifier: Apache-2.0
 *
 * Long strings of a JSON text, decoded before the parser runs. jansson looks at every byte several times, and
 * most bytes of a prompt file lie in a few long strings. These are decoded here, and the parser gets a short
 * text with marks in their places. Incorrect strings stay, so that the parser reports them.
 */
#ifndef CAKE_FORMATS_JSON_STRINGS_H
#define CAKE_FORMATS_JSON_STRINGS_H

#include "base/buf.h"

/* All zeros before the first use and after cake_json_strings_free. */
typedef struct cake_json_strings {
    cake_buf text;    /* for the parser; empty if n is 0: then the parser takes the original text */
    cake_buf strings; /* decoded, concatenated */
    size_t *end;      /* [n] the end of each in `strings` */
    size_t n, cap;
} cake_json_strings;

/* Takes the long strings out of a JSON text [len] of valid UTF-8. */
void cake_json_strings_take(cake_json_strings *strings, const char *text, size_t len);
/* The string [*len] that belongs to the mark [n]; NULL: not a mark. */
const char *cake_json_strings_find(const cake_json_strings *strings, const char *mark, size_t n, size_t *len);
void cake_json_strings_free(cake_json_strings *strings);

#endif
