/* SPDX-License-Identifier: Apache-2.0
 *
 * Structural tags: texts, schemas, patterns and free text one after another, as xgrammar and vLLM write them.
 * Elements are objects with a `type`:
 *
 *     const_string {value}, json_schema {json_schema}, regex {pattern}, grammar {grammar}, any_text
 *     sequence {elements}, or {elements}, optional {content}, star {content}, plus {content}
 *     tag {begin, content, end}
 *     tags_with_separator {tags, separator, at_least_one, stop_after_first}
 *     triggered_tags {triggers, tags, at_least_one, stop_after_first}: free text up to a trigger, with which
 *         one of the tags begins
 *     qwen_xml_parameter {json_schema}, glm_xml_parameter {json_schema}: members as Qwen3-Coder and GLM-4.5
 *         write them
 *     token {token}: the special token of this text
 *
 * Free text ends where the text after it first occurs.
 */
#ifndef CAKE_GRAMMAR_STRUCTURE_H
#define CAKE_GRAMMAR_STRUCTURE_H

#include "base/err.h"
#include "formats/json.h"
#include "grammar/schema.h"

/* Adds the rules of an element, of {"type": "structural_tag", "format": element}, or of the older form
 * {"structures": [{begin, schema, end}], "triggers": [text]}; *root: the rule of the whole. A fault names the
 * place. */
cake_err cake_structure_add(const cake_json *element, const cake_schema_options *options,
                            cake_automaton *automaton, int *root, cake_fault *fault);

#endif
