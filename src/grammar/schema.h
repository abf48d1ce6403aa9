/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON Schema (draft 2020-12) as rules of an automaton: the texts that they take are valid. Members of an
 * object come in the order in which the schema lists them, further ones after them.
 */
#ifndef CAKE_GRAMMAR_SCHEMA_H
#define CAKE_GRAMMAR_SCHEMA_H

#include "base/err.h"
#include "formats/json.h"
#include "grammar/automaton.h"

typedef struct cake_schema_options {
    bool compact; /* no white space between tokens */
    bool closed;  /* no members beside those that a schema lists, unless it says additionalProperties */
} cake_schema_options;

/* Adds the schema's rules; *root: the one that takes its values. A fault names the keyword and its place. */
cake_err cake_schema_add(const cake_json *schema, const cake_schema_options *options,
                         cake_automaton *automaton, int *root, cake_fault *fault);

/* The same of a schema within `root`, to which its references go. */
cake_err cake_schema_add_at(const cake_json *root, const cake_json *schema,
                            const cake_schema_options *options, cake_automaton *automaton, int *rule,
                            cake_fault *fault);

/* Adds edges from `from` to `to` over the strings for which the schema's own pattern, format and lengths
 * hold, as they are, without quotes and escapes; *any: it has none of these, and nothing is added. */
cake_err cake_schema_add_text(const cake_json *root, const cake_json *schema, cake_automaton *automaton,
                              int32_t from, int32_t to, bool *any, cake_fault *fault);

#endif
