/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts that several regular languages have in common.
 */
#ifndef CAKE_GRAMMAR_INTERSECT_H
#define CAKE_GRAMMAR_INTERSECT_H

#include "base/buf.h"
#include "grammar/automaton.h"

#define CAKE_MAX_LANGUAGE 16

/* A rule of an automaton, without recursion. */
typedef struct cake_language {
    int rule;
    bool without; /* the texts that it does not have */
} cake_language;

/* Adds to `to` edges from state `from` to state `end` over all texts that the languages [n], rules of
 * `from_rules`, have in common; the first one is not `without`. from_rules is finished by the call, unless it
 * is already. `to` pays for all that was done with
 * from_rules, and is full if there would be too many states or steps. */
void cake_intersect(cake_automaton *from_rules, const cake_language *language, int n, cake_automaton *to,
                    int32_t from, int32_t end);
/* Whether the language has the text. */
bool cake_language_has(cake_automaton *rules, int rule, const char *text, size_t len);
/* Appends the texts that a rule takes, each with a NUL, in the order of their bytes. False: there are more
 * than `most`, or some that are long. */
bool cake_language_list(cake_automaton *rules, int rule, int most, cake_buf *texts);

#endif
