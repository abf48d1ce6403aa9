/* SPDX-License-Identifier: Apache-2.0
 *
 * Free text up to the first of several texts.
 */
#ifndef CAKE_GRAMMAR_SEARCH_H
#define CAKE_GRAMMAR_SEARCH_H

#include "grammar/automaton.h"

/* The most characters that all texts may have, where texts that begin alike share these. */
#define CAKE_SEARCH_CHARS 1024

typedef struct cake_search_text {
    const char *text; /* [len] UTF-8, not empty */
    size_t len;
    int32_t to; /* the state behind it */
} cake_search_text;

/* Adds edges over texts that end with the first place where one of texts [n] ends, to the state behind this
 * one; and, unless end is -1, over texts that have none of them, to `end`. False: a text is empty, too long,
 * or not UTF-8. */
bool cake_search_add(cake_automaton *automaton, int32_t from, const cake_search_text *texts, size_t n,
                     int32_t end);

#endif
