/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a value that is already there, such as the arguments of a tool call, is valid for a JSON schema.
 * Unlike the rules of schema.h this knows no order of members, and also keywords that no grammar expresses.
 */
#ifndef CAKE_GRAMMAR_VALIDATE_H
#define CAKE_GRAMMAR_VALIDATE_H

#include <stdbool.h>

#include "formats/json.h"

/* Whether the value is valid for a schema of draft 2020-12. `format` is asserted where string_formats.h has a
 * pattern. `dependencies`, `items` with an array, and boolean exclusiveMinimum and exclusiveMaximum are read
 * as in drafts 7 and 4. $dynamicRef, unevaluatedItems and unevaluatedProperties are not checked; unknown
 * keywords mean nothing, as the draft says. Nothing is valid for a schema that is wrong where the value meets
 * it (a keyword's value of the wrong type, a reference to nowhere or to itself), nor is a value that takes
 * too many steps. A `pattern` that regex.h does not know takes any string. Both may come from anywhere. */
bool cake_schema_valid(const cake_json *schema, const cake_json *value);
/* The same of a schema within `root`, to which its references go. */
bool cake_schema_valid_at(const cake_json *root, const cake_json *schema, const cake_json *value);

/* For many values: patterns are compiled once. */
typedef struct cake_validator cake_validator;
cake_validator *cake_validator_open(const cake_json *root);
void cake_validator_close(cake_validator *validator); /* NULL is fine */
/* Whether the value is valid for a schema's keywords other than enum and const, and other than those that
 * name further schemas for the same value: $ref, allOf, anyOf, oneOf. Adds to *steps; one of them is 100 ns
 * or so. */
bool cake_validator_own(cake_validator *validator, const cake_json *schema, const cake_json *value,
                        int64_t *steps);

#endif
