/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules for JSON texts (RFC 8259).
 */
#ifndef CAKE_GRAMMAR_JSON_RULES_H
#define CAKE_GRAMMAR_JSON_RULES_H

#include "grammar/automaton.h"

/* Numbers of rules. */
typedef struct cake_json_rules {
    int space;     /* between tokens: nothing; unless compact also a blank, or one or two ends of lines and
                    * blanks after them */
    int character; /* of a string, also as any escape */
    int string, number, integer, object, array, value;
} cake_json_rules;

void cake_json_rules_add(cake_automaton *automaton, bool compact, cake_json_rules *out);
/* Characters of a string as a JSON writer writes them, each in one way; chars NULL: any. */
void cake_json_rules_plain(cake_automaton *automaton, int32_t from, int32_t to);

#endif
