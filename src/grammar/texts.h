/* SPDX-License-Identifier: Apache-2.0
 *
 * Many texts as one tree of states: beginnings that they share are there once.
 */
#ifndef CAKE_GRAMMAR_TEXTS_H
#define CAKE_GRAMMAR_TEXTS_H

#include "grammar/automaton.h"

typedef struct cake_text {
    const char *text; /* [len] UTF-8 */
    size_t len;
} cake_text;

/* Adds edges from state `from` to state `to` over the texts [n], which it sorts; equal ones count once. */
void cake_texts_add(cake_automaton *automaton, int32_t from, cake_text *texts, size_t n, cake_coding coding,
                    int32_t to);
/* The same of one text. */
void cake_text_add(cake_automaton *automaton, int32_t from, const char *text, size_t len, cake_coding coding,
                   int32_t to);

#endif
