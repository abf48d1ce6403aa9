/* SPDX-License-Identifier: Apache-2.0
 *
 * What regex.c, which reads the structure of a pattern, and regex_class.c, which reads what matches one
 * character, share.
 */
#ifndef CAKE_TEXT_REGEX_PARTS_H
#define CAKE_TEXT_REGEX_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/regex.h"

#define CAKE_REGEX_DEPTH 200 /* groups and classes inside each other: more is no pattern but an attack */

typedef struct cake_regex {
    const cake_json_path *spot;
    const char *text; /* [len], what is read */
    size_t len, at;
    cake_buf *out;
    int depth;
    bool extended; /* white space and comments are skipped */
} cake_regex;

cake_err cake_regex_refuse(const cake_regex *r, const char *what); /* "at byte N of the pattern: ..." */
bool cake_regex_looking(const cake_regex *r, const char *what);
/* The escape at r->at as an item that matches one character, if it names a set; *found says so. */
cake_err cake_regex_set(cake_regex *r, bool *found, cake_buf *out);
/* One character, as it is or escaped. */
cake_err cake_regex_character(cake_regex *r, uint32_t *code);
/* The class at r->at as an item that matches one character. */
cake_err cake_regex_class(cake_regex *r, cake_buf *out);
void cake_regex_word(cake_buf *out); /* what \w matches, as an item */

#endif
