/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by regex.c, which reads the structure of a pattern, and regex_class.c, which reads items that match
 * one character.
 */
#ifndef CAKE_TEXT_REGEX_PARTS_H
#define CAKE_TEXT_REGEX_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/regex.h"

#define CAKE_REGEX_DEPTH 200 /* maximum nesting of groups and classes */

typedef struct cake_regex {
    const cake_json_path *path;
    const char *text; /* [len] */
    size_t len, at;
    cake_buf *out;
    int depth;
    bool extended; /* white space and comments are skipped */
} cake_regex;

cake_err cake_regex_refuse(const cake_regex *r,
                           const char *what); /* Fails with "at byte N of the pattern: ...". */
bool cake_regex_looking(const cake_regex *r, const char *what);
/* Writes the escape at r->at as an item that matches one character, if it names a set; *found says so. */
cake_err cake_regex_set(cake_regex *r, bool *found, cake_buf *out);
/* Reads one character, plain or escaped. */
cake_err cake_regex_character(cake_regex *r, uint32_t *code);
/* Writes the class at r->at as an item that matches one character. */
cake_err cake_regex_class(cake_regex *r, cake_buf *out);
void cake_regex_word(cake_buf *out); /* writes what \w matches, as an item */

#endif
