/* SPDX-License-Identifier: Apache-2.0
 *
 * Long strings of a JSON text, decoded ahead of the parser. jansson looks at every byte several times, and
 * most bytes of a prompt file lie in a few long strings: these are decoded here by the run, and the parser
 * gets a short text with marks in their places. Strings that are not quite right stay where they are, so that
 * the parser finds the fault.
 */
#ifndef CAKE_FORMATS_JSON_STRINGS_H
#define CAKE_FORMATS_JSON_STRINGS_H

#include "base/buf.h"

/* All zeros before the first use and after cake_json_strings_free. */
typedef struct cake_json_strings {
    cake_buf text;    /* for the parser; if n is 0 it is empty, and the parser takes the text as it was */
    cake_buf strings; /* decoded, one after the other */
    size_t *end;      /* [n] where each ends in strings */
    size_t n, cap;
} cake_json_strings;

/* Takes the long strings out of a JSON text [len] of valid UTF-8. */
void cake_json_strings_take(cake_json_strings *lift, const char *text, size_t len);
/* The string [*len] that a parsed string [n] stands for; NULL: it is no mark. */
const char *cake_json_strings_find(const cake_json_strings *lift, const char *mark, size_t n, size_t *len);
void cake_json_strings_free(cake_json_strings *lift);

#endif
