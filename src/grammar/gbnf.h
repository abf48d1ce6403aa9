/* SPDX-License-Identifier: Apache-2.0
 *
 * Grammars in GBNF, the form of llama.cpp: rules `name ::= alternatives` over characters, from `root` on.
 */
#ifndef CAKE_GRAMMAR_GBNF_H
#define CAKE_GRAMMAR_GBNF_H

#include "base/err.h"
#include "grammar/automaton.h"

/* Adds the grammar's rules to the automaton; *root: the number of the rule called root. Faults name the
 * line. */
cake_err cake_gbnf_parse(const char *text, size_t len, cake_automaton *automaton, int *root,
                         cake_fault *fault);

#endif
