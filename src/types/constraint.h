/* SPDX-License-Identifier: Apache-2.0
 *
 * What an answer must look like.
 */
#ifndef CAKE_TYPES_CONSTRAINT_H
#define CAKE_TYPES_CONSTRAINT_H

#include <stdbool.h>
#include <stddef.h>

typedef enum cake_constraint_kind {
    CAKE_CONSTRAINT_NONE,
    CAKE_CONSTRAINT_SCHEMA,   /* JSON that is valid for the JSON schema in text */
    CAKE_CONSTRAINT_OBJECT,   /* any JSON object */
    CAKE_CONSTRAINT_REGEX,    /* a text that the pattern in text matches */
    CAKE_CONSTRAINT_CHOICE,   /* one of the strings of the JSON array in text */
    CAKE_CONSTRAINT_GRAMMAR,  /* what the GBNF grammar in text derives */
    CAKE_CONSTRAINT_STRUCTURE /* what the structural tag in text says: grammar/structure.h */
} cake_constraint_kind;

typedef struct cake_constraint_source {
    cake_constraint_kind kind;
    bool compact; /* JSON without white space between tokens */
    bool closed;  /* no members that the schema does not list, unless it says additionalProperties */
    char *text;   /* [len] owned */
    size_t len;
} cake_constraint_source;

#endif
