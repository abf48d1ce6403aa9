/* SPDX-License-Identifier: Apache-2.0
 *
 * In: enum and const, and keywords beside them. Out: edges over the values that are valid; whether two
 * schemas have values in common.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "grammar/schema_parts.h"
#include "grammar/texts.h"

bool cake_schema_has_enum(const cake_schema_list *list)
{
    for (int i = 0; i < list->n; i++)
        if (cake_json_get(list->part[i].schema, "enum") || cake_json_get(list->part[i].schema, "const"))
            return true;
    return false;
}

/* ---- values as text */

/* Appends a number, true, false or null; real numbers as the shortest decimal. */
static void add_plain(const cake_json *value, cake_buf *out)
{
    size_t len;
    if (cake_json_kind(value) == CAKE_JSON_REAL && !cake_json_digits(value, &len))
        cake_json_add_real(out, cake_json_real(value, 0));
    else
        cake_json_add_node(out, value);
}

void cake_schema_add_value(cake_schema_compiler *c, const cake_json *value, int32_t from, int32_t to)
{
    cake_automaton *a = c->automaton;
    const bool object = cake_json_kind(value) == CAKE_JSON_OBJECT;
    cake_buf text = {0};
    size_t len;
    if (cake_json_kind(value) == CAKE_JSON_STRING) {
        const char *own = cake_json_text(value, &len);
        const int32_t begin = cake_schema_byte(c, from, '"'), end = cake_automaton_state(a);
        cake_text_add(a, begin, own, len, CAKE_CODING_JSON, end);
        cake_automaton_bytes(a, end, '"', '"', to);
    } else if (object || cake_json_kind(value) == CAKE_JSON_ARRAY) {
        int32_t at = cake_schema_space(c, cake_schema_byte(c, from, object ? '{' : '['));
        void *it = object ? cake_json_first(value) : NULL;
        for (size_t i = 0; i < cake_json_size(value) && !a->full; i++) {
            if (i)
                at = cake_schema_space(c, cake_schema_byte(c, at, ','));
            if (object) {
                const char *key = cake_json_key(it, &len);
                const int32_t begin = cake_schema_byte(c, at, '"'), end = cake_automaton_state(a);
                cake_text_add(a, begin, key, len, CAKE_CODING_JSON, end);
                at = cake_schema_space(c, cake_schema_byte(c, end, '"'));
                at = cake_schema_space(c, cake_schema_byte(c, at, ':'));
            }
            const int32_t next = cake_automaton_state(a);
            cake_schema_add_value(c, object ? cake_json_value(it) : cake_json_at(value, i), at, next);
            at = cake_schema_space(c, next);
            it = object ? cake_json_next(value, it) : NULL;
        }
        cake_automaton_bytes(a, at, object ? '}' : ']', object ? '}' : ']', to);
    } else {
        add_plain(value, &text);
        cake_automaton_empty(a, cake_automaton_literal(a, from, text.data, text.len), to);
    }
    cake_buf_free(&text);
}

/* ---- values that are valid */

static bool has_any(const cake_schema_list *list, const char *const *keywords)
{
    for (int i = 0; i < list->n; i++)
        for (const char *const *k = keywords; *k; k++)
            if (cake_json_get(list->part[i].schema, *k))
                return true;
    return false;
}

/* Refuses what is wrong or not supported in keywords beside the values. Schemas of items and members are
 * looked at when their rules are written, so this asks for these, in states that nothing leads to. */
static cake_err check_others(cake_schema_compiler *c, const cake_schema_list *list, int seen)
{
    static const char *const arrays[] = {"items",    "prefixItems", "additionalItems",
                                         "minItems", "maxItems",    NULL};
    static const char *const objects[] = {
        "properties", "patternProperties", "additionalProperties", "propertyNames",
        "required",   "minProperties",     "maxProperties",        NULL};
    cake_err err = CAKE_OK;
    if (seen & CAKE_TYPE_STRING) {
        cake_automaton rules = {0};
        cake_language language[CAKE_MAX_LANGUAGE] = {{0}};
        int n = 0;
        err = cake_schema_string_rules(c, list, CAKE_CODING_JSON, &rules, language, &n);
        cake_automaton_spend(c->automaton, (size_t)rules.work);
        if (rules.full)
            cake_automaton_stop(c->automaton, rules.limit);
        cake_automaton_free(&rules);
    }
    if (!err && seen & (CAKE_TYPE_INTEGER | CAKE_TYPE_NUMBER))
        err = cake_schema_check_numbers(c, list);
    if (!err && seen & CAKE_TYPE_ARRAY && has_any(list, arrays))
        err = cake_schema_add_array(c, list, cake_automaton_state(c->automaton),
                                    cake_automaton_state(c->automaton));
    if (!err && seen & CAKE_TYPE_OBJECT && has_any(list, objects))
        err = cake_schema_add_object(c, list, cake_automaton_state(c->automaton),
                                     cake_automaton_state(c->automaton));
    return err;
}

/* Whether a value of set `own` is in all sets [list->n], NULL where there is none, and obeys the other
 * keywords. */
static bool is_valid(cake_schema_compiler *c, const cake_schema_list *list, const cake_value_set *const *sets,
                     const cake_value_set *own, const cake_hashed_value *value)
{
    bool valid = true;
    for (int i = 0; i < list->n && valid; i++)
        valid = !sets[i] || sets[i] == own || cake_schema_has_value(c, sets[i], value);
    if (!c->validator)
        c->validator = cake_validator_open(c->root);
    for (int i = 0; i < list->n && valid; i++) {
        int64_t steps = 0;
        valid = cake_validator_own(c->validator, list->part[i].schema, value->value, &steps);
        cake_automaton_spend(c->automaton, 8 * (size_t)steps);
    }
    return valid;
}

/* Edges over the values of the smallest set that are valid. */
static void add_valid(cake_schema_compiler *c, const cake_schema_list *list,
                      const cake_value_set *const *sets, int types, int32_t from, int32_t to)
{
    const cake_value_set *least = NULL;
    size_t n_text = 0, n_plain = 0;
    cake_buf all = {0}; /* the texts of plain ones, one after another */
    for (int i = 0; i < list->n; i++)
        least = sets[i] && (!least || sets[i]->n < least->n) ? sets[i] : least;
    cake_text *texts = cake_alloc(least->n + 1, sizeof *texts),
              *plain = cake_alloc(least->n + 1, sizeof *plain);
    for (size_t i = 0; i < least->n && !c->automaton->full; i++) {
        const cake_json *value = least->value[i].value;
        if (!(cake_schema_type_of(value) & types) || !is_valid(c, list, sets, least, &least->value[i]))
            continue;
        if (cake_json_kind(value) == CAKE_JSON_STRING) {
            texts[n_text].text = cake_json_text(value, &texts[n_text].len);
            n_text++;
        } else if (cake_json_kind(value) == CAKE_JSON_ARRAY || cake_json_kind(value) == CAKE_JSON_OBJECT) {
            cake_schema_add_value(c, value, from, to);
        } else {
            const size_t before = all.len;
            add_plain(value, &all);
            plain[n_plain++].len = all.len - before;
        }
    }
    size_t at = 0;
    for (size_t i = 0; i < n_plain; i++, at += plain[i - 1].len)
        plain[i].text = all.data + at;
    cake_texts_add(c->automaton, from, plain, n_plain, CAKE_CODING_PLAIN, to);
    if (n_text) {
        const int32_t begin = cake_schema_byte(c, from, '"'), end = cake_automaton_state(c->automaton);
        cake_automaton_bytes(c->automaton, end, '"', '"', to);
        cake_texts_add(c->automaton, begin, texts, n_text, CAKE_CODING_JSON, end);
    }
    free(texts);
    free(plain);
    cake_buf_free(&all);
}

cake_err cake_schema_add_enum(cake_schema_compiler *c, const cake_schema_list *list, int types, int32_t from,
                              int32_t to)
{
    const cake_value_set **sets = cake_alloc((size_t)list->n, sizeof *sets);
    cake_err err = CAKE_OK;
    int seen = CAKE_TYPE_ALL;
    for (int i = 0; i < list->n && !err; i++) {
        const cake_json *schema = list->part[i].schema, *own = cake_json_get(schema, "enum");
        if (own && (cake_json_kind(own) != CAKE_JSON_ARRAY || !cake_json_size(own)))
            err = cake_schema_wrong(c, schema, "enum", "expected an array of values");
        else
            sets[i] = cake_schema_values(c, schema);
        seen &= sets[i] ? sets[i]->types : seen;
    }
    if (!err)
        err = check_others(c, list, seen & types);
    if (!err && !c->automaton->full)
        add_valid(c, list, sets, types, from, to);
    free(sets);
    return err;
}

/* ---- disjoint schemas */

/* The schema behind references, as long as it is nothing but one. */
static const cake_json *behind(cake_schema_compiler *c, const cake_json *schema)
{
    for (int hops = 0; hops < 16; hops++) {
        const char *text = cake_json_text(cake_json_get(schema, "$ref"), NULL);
        const cake_json *target = text ? cake_schema_resolve(c, text) : NULL;
        if (!target)
            break;
        schema = target;
    }
    return schema;
}

static bool requires(cake_schema_compiler *c, const cake_json *schema, const char *name)
{
    const cake_json *list = cake_json_get(schema, "required");
    for (size_t i = 0; i < cake_json_size(list) && !c->automaton->full; i++) {
        cake_automaton_spend(c->automaton, 1);
        const char *text = cake_json_text(cake_json_at(list, i), NULL);
        if (text && !strcmp(text, name))
            return true;
    }
    return false;
}

/* Whether two sets have no value in common; NULL: all values. */
static bool sets_differ(cake_schema_compiler *c, const cake_value_set *a, const cake_value_set *b)
{
    if (!a || !b)
        return false;
    for (size_t i = 0, j = 0; i < a->n && j < b->n && !c->automaton->full;) {
        cake_automaton_spend(c->automaton, 1);
        if (a->value[i].hash < b->value[j].hash)
            i++;
        else if (a->value[i].hash > b->value[j].hash)
            j++;
        else if (cake_schema_has_value(c, b, &a->value[i]))
            return false;
        else
            i++;
    }
    return true;
}

static int types_alone(cake_schema_compiler *c, const cake_json *schema, const cake_value_set *set)
{
    int types = CAKE_TYPE_ALL;
    cake_fault *fault = c->fault, dropped;
    c->fault = &dropped;
    if (cake_schema_types(c, schema, &types))
        types = CAKE_TYPE_ALL;
    c->fault = fault;
    return set ? types & set->types : types;
}

/* Whether the largest value of the one is below the smallest of the other. */
static bool is_below(const cake_json *a, const char *top, const cake_json *b, const char *bottom, bool open)
{
    const cake_json *upper = cake_json_get(a, top), *lower = cake_json_get(b, bottom);
    if (!cake_json_is_number(upper) || !cake_json_is_number(lower))
        return false;
    const int order = cake_schema_compare_numbers(upper, lower);
    return order < 0 || (open && !order);
}

/* Whether ranges of numbers, lengths or counts keep values of all the common types apart. */
static bool ranges_differ(const cake_json *a, const cake_json *b, int common)
{
    enum { NUMBERS = CAKE_TYPE_INTEGER | CAKE_TYPE_NUMBER };
    static const struct {
        int types;
        const char *top, *bottom;
        bool open;
    } rows[] = {{NUMBERS, "maximum", "minimum", false},
                {NUMBERS, "exclusiveMaximum", "minimum", true},
                {NUMBERS, "maximum", "exclusiveMinimum", true},
                {NUMBERS, "exclusiveMaximum", "exclusiveMinimum", true},
                {CAKE_TYPE_STRING, "maxLength", "minLength", false},
                {CAKE_TYPE_ARRAY, "maxItems", "minItems", false},
                {CAKE_TYPE_OBJECT, "maxProperties", "minProperties", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (is_below(a, rows[i].top, b, rows[i].bottom, rows[i].open) ||
            is_below(b, rows[i].top, a, rows[i].bottom, rows[i].open))
            common &= ~rows[i].types;
    return !common;
}

static bool disjoint(cake_schema_compiler *c, const cake_json *a, const cake_json *b, int depth)
{
    a = behind(c, a);
    b = behind(c, b);
    const cake_value_set *values = cake_schema_values(c, a), *others = cake_schema_values(c, b);
    const int common = types_alone(c, a, values) & types_alone(c, b, others);
    const cake_json *mine = cake_json_get(a, "properties"), *other = cake_json_get(b, "properties");
    cake_automaton_spend(c->automaton, 16);
    if (!common || sets_differ(c, values, others) || ranges_differ(a, b, common))
        return true;
    if (common != CAKE_TYPE_OBJECT || !depth)
        return false;
    for (void *it = cake_json_first(mine); it && !c->automaton->full; it = cake_json_next(mine, it)) {
        const char *name = cake_json_key(it, NULL);
        const cake_json *same = cake_json_get(other, name);
        cake_automaton_spend(c->automaton, 4);
        if (same && requires(c, a, name) && requires(c, b, name) &&
            disjoint(c, cake_json_value(it), same, depth - 1))
            return true;
    }
    /* a member that one requires and the other does not allow */
    for (int swap = 0; swap < 2; swap++) {
        const cake_json *x = swap ? b : a, *y = swap ? a : b, *list = cake_json_get(x, "required");
        const cake_json *more = cake_json_get(y, "additionalProperties");
        if (cake_json_kind(more) != CAKE_JSON_BOOL || cake_json_bool(more, true) ||
            cake_json_get(y, "patternProperties"))
            continue;
        for (size_t i = 0; i < cake_json_size(list) && !c->automaton->full; i++) {
            const char *name = cake_json_text(cake_json_at(list, i), NULL);
            cake_automaton_spend(c->automaton, 4);
            if (name && !cake_json_get(cake_json_get(y, "properties"), name))
                return true;
        }
    }
    return false;
}

bool cake_schema_disjoint(cake_schema_compiler *c, const cake_json *a, const cake_json *b)
{
    const bool never = (cake_json_kind(a) == CAKE_JSON_BOOL && !cake_json_bool(a, true)) ||
                       (cake_json_kind(b) == CAKE_JSON_BOOL && !cake_json_bool(b, true));
    return never || disjoint(c, a, b, 4);
}
