/* SPDX-License-Identifier: Apache-2.0
 *
 * In: a schema. Out: rules. A rule belongs to a list of schemas that all hold for one value: references and
 * allOf add to the list, anyOf and oneOf give a rule for each alternative, and what is left is written type
 * by type.
 * Source: JSON Schema core and validation, draft 2020-12; `items` with an array as in draft 7.
 */
#include "grammar/schema.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "grammar/schema_parts.h"

enum { MOST_RULES = 20000, MOST_PARTS = 200 };

/* Whether part i of the list was named, through others, by the schema itself. */
static bool leads_back(const cake_schema_list *list, int i, const cake_json *schema)
{
    for (; i >= 0; i = list->part[i].by)
        if (list->part[i].schema == schema)
            return true;
    return false;
}

/* Adds a schema that part `by` names. */
static cake_err add_named(cake_schema_compiler *c, cake_schema_list *list, int by, const char *keyword,
                          const cake_json *schema)
{
    const cake_json_type kind = cake_json_kind(schema);
    if (kind != CAKE_JSON_BOOL && kind != CAKE_JSON_OBJECT)
        return cake_schema_wrong(c, list->part[by].schema, keyword,
                                 "expected a schema: an object, true or false");
    if (kind == CAKE_JSON_OBJECT && leads_back(list, by, schema))
        return cake_schema_wrong(c, list->part[by].schema, keyword, "it leads back to itself");
    if (list->n > MOST_PARTS)
        return cake_schema_wrong(c, list->part[by].schema, keyword, "too many schemas hold for one value");
    if (kind == CAKE_JSON_BOOL)
        list->never = list->never || !cake_json_bool(schema, true);
    else
        cake_schema_list_add_part(list, schema, CAKE_SHARE_WHOLE, by);
    return CAKE_OK;
}

static cake_err open_part(cake_schema_compiler *c, cake_schema_list *list, int i)
{
    static const char *const choices[] = {"anyOf", "oneOf"};
    const cake_json *schema = list->part[i].schema;
    const cake_json *reference = cake_json_get(schema, "$ref"), *all = cake_json_get(schema, "allOf");
    const char *text = cake_json_text(reference, NULL);
    cake_err err = cake_schema_check_keywords(c, schema);
    list->part[i].share = CAKE_SHARE_OWN;
    if (!err && reference) {
        const cake_json *target = text ? cake_schema_resolve(c, text) : NULL;
        if (!target)
            return cake_schema_wrong(c, schema, "$ref",
                                     "expected a place in this schema, such as #/$defs/name");
        err = add_named(c, list, i, "$ref", target);
    }
    if (!err && all && cake_json_kind(all) != CAKE_JSON_ARRAY)
        return cake_schema_wrong(c, schema, "allOf", "expected an array of schemas");
    for (size_t j = 0; j < cake_json_size(all) && !err; j++)
        err = add_named(c, list, i, "allOf", cake_json_at(all, j));
    for (int k = 0; k < 2 && !err; k++) {
        const cake_json *choice = cake_json_get(schema, choices[k]);
        if (!choice)
            continue;
        if (cake_json_kind(choice) != CAKE_JSON_ARRAY || !cake_json_size(choice))
            return cake_schema_wrong(c, schema, choices[k], "expected an array of schemas");
        cake_schema_list_add_part(list, schema, k ? CAKE_SHARE_ONE : CAKE_SHARE_ANY, i);
    }
    return err;
}

/* ---- alternatives */

static cake_err check_disjoint(cake_schema_compiler *c, const cake_json *schema)
{
    const cake_json *one = cake_json_get(schema, "oneOf");
    for (size_t i = 0; i < cake_json_size(one); i++)
        for (size_t j = i + 1; j < cake_json_size(one) && !c->automaton->full; j++)
            if (!cake_schema_disjoint(c, cake_json_at(one, i), cake_json_at(one, j)) && !c->automaton->full)
                return cake_schema_wrong(
                    c, schema, "oneOf",
                    "a value may be valid for several alternatives; tell them apart by type, by a range, "
                    "or by a required member with another const, or use anyOf");
    return CAKE_OK;
}

/* Writes the rule as one call for each alternative of part `choice`. */
static cake_err write_choice(cake_schema_compiler *c, const cake_schema_list *list, int choice,
                             cake_rule rule)
{
    const cake_json *schema = list->part[choice].schema;
    const bool one = list->part[choice].share == CAKE_SHARE_ONE;
    const cake_json *alternatives = cake_json_get(schema, one ? "oneOf" : "anyOf");
    cake_err err = one ? check_disjoint(c, schema) : CAKE_OK;
    for (size_t i = 0; i < cake_json_size(alternatives) && !err && !c->automaton->full; i++) {
        cake_schema_list each = {0};
        cake_automaton_spend(c->automaton, 16 + (size_t)(list->n * list->n) / 8);
        for (int p = 0; p < list->n; p++)
            if (p != choice)
                cake_schema_list_add_part(&each, list->part[p].schema, list->part[p].share, -1);
        const cake_json *alternative = cake_json_at(alternatives, i);
        if (cake_json_kind(alternative) != CAKE_JSON_BOOL && cake_json_kind(alternative) != CAKE_JSON_OBJECT)
            err = cake_schema_wrong(c, schema, one ? "oneOf" : "anyOf",
                                    "expected schemas: objects, true or false");
        else
            cake_schema_list_add(&each, alternative);
        cake_automaton_call(c->automaton, rule.begin, cake_schema_rule_of(c, &each), rule.end);
    }
    return err;
}

/* ---- types */

static cake_err write_types(cake_schema_compiler *c, const cake_schema_list *list, cake_rule rule)
{
    int types = CAKE_TYPE_ALL, own;
    cake_err err = CAKE_OK;
    for (int i = 0; i < list->n && !err; i++) {
        err = cake_schema_types(c, list->part[i].schema, &own);
        types &= own;
        cake_automaton_spend(c->automaton,
                             8 * (1 + cake_json_size(cake_json_get(list->part[i].schema, "type"))));
    }
    if (!err && cake_schema_has_enum(list))
        return cake_schema_add_enum(c, list, types, rule.begin, rule.end);
    if (!err && types & CAKE_TYPE_NULL)
        cake_automaton_empty(c->automaton, cake_automaton_literal(c->automaton, rule.begin, "null", 4),
                             rule.end);
    if (!err && types & CAKE_TYPE_BOOL) {
        cake_automaton_empty(c->automaton, cake_automaton_literal(c->automaton, rule.begin, "true", 4),
                             rule.end);
        cake_automaton_empty(c->automaton, cake_automaton_literal(c->automaton, rule.begin, "false", 5),
                             rule.end);
    }
    if (!err && types & (CAKE_TYPE_INTEGER | CAKE_TYPE_NUMBER))
        err = cake_schema_add_number(c, list, !(types & CAKE_TYPE_NUMBER), rule.begin, rule.end);
    if (!err && types & CAKE_TYPE_STRING)
        err = cake_schema_add_string(c, list, rule.begin, rule.end);
    if (!err && types & CAKE_TYPE_ARRAY)
        err = cake_schema_add_array(c, list, rule.begin, rule.end);
    if (!err && types & CAKE_TYPE_OBJECT)
        err = cake_schema_add_object(c, list, rule.begin, rule.end);
    return err;
}

/* Appends part i of a list, then what it names, so that members of objects come in the order of the text. */
static void add_in_order(const cake_schema_list *list, int i, cake_schema_list *out)
{
    cake_schema_list_add_part(out, list->part[i].schema, list->part[i].share, -1);
    for (int j = i + 1; j < list->n; j++)
        if (list->part[j].by == i)
            add_in_order(list, j, out);
}

static cake_err write_rule(cake_schema_compiler *c, const cake_schema_rule *known)
{
    cake_schema_list list = {.never = known->list.never}, ordered = {0};
    const cake_rule rule = c->automaton->rule[known->rule];
    int choice = -1;
    cake_err err = CAKE_OK;
    for (int i = 0; i < known->list.n; i++)
        cake_schema_list_add_part(&list, known->list.part[i].schema, known->list.part[i].share, -1);
    for (int i = 0; i < list.n && !err && !list.never; i++)
        if (list.part[i].share == CAKE_SHARE_WHOLE)
            err = open_part(c, &list, i);
    cake_automaton_spend(c->automaton, 64 + (size_t)(list.n * list.n) / 4);
    for (int i = 0; i < list.n; i++)
        if (list.part[i].by < 0)
            add_in_order(&list, i, &ordered);
    for (int i = ordered.n; i-- > 0;)
        choice = ordered.part[i].share >= CAKE_SHARE_ANY ? i : choice;
    if (!err && !list.never) /* else nothing is valid */
        err = choice >= 0 ? write_choice(c, &ordered, choice, rule) : write_types(c, &ordered, rule);
    free(list.part);
    free(ordered.part);
    return err;
}

static void close_compiler(cake_schema_compiler *c)
{
    for (size_t i = 0; i < c->n_known; i++)
        free(c->known[i].list.part);
    free(c->known);
    free(c->slot);
    free(c->anchor);
    cake_schema_free_values(c);
    cake_validator_close(c->validator);
    cake_exprs_free(&c->exprs);
}

cake_err cake_schema_add_at(const cake_json *root, const cake_json *schema,
                            const cake_schema_options *options, cake_automaton *automaton, int *rule,
                            cake_fault *fault)
{
    cake_schema_compiler c = {.root = root, .options = options, .automaton = automaton, .fault = fault};
    cake_schema_list list = {0};
    cake_err err = CAKE_OK;
    if (cake_json_kind(schema) != CAKE_JSON_BOOL && cake_json_kind(schema) != CAKE_JSON_OBJECT)
        return cake_fault_set(fault, NULL, "the schema is %s; expected an object, true or false",
                              cake_json_kind_name(schema));
    cake_json_rules_add(automaton, options->compact, &c.json);
    cake_schema_list_add(&list, schema);
    *rule = cake_schema_rule_of(&c, &list);
    while (c.n_done < c.n_known && !err && !automaton->full) {
        const cake_schema_rule next = c.known[c.n_done++]; /* the list may move */
        err = c.n_known > MOST_RULES ? cake_schema_wrong(&c, schema, "schema", "it has too many combinations")
                                     : write_rule(&c, &next);
        if (!err && automaton->full)
            err = cake_schema_too_large(&c, next.list.n ? next.list.part[0].schema : schema);
    }
    close_compiler(&c);
    return err;
}

cake_err cake_schema_add(const cake_json *schema, const cake_schema_options *options,
                         cake_automaton *automaton, int *root, cake_fault *fault)
{
    return cake_schema_add_at(schema, schema, options, automaton, root, fault);
}
