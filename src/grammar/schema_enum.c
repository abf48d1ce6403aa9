/* SPDX-License-Identifier: Apache-2.0
 *
 * In: enum and const, and keywords beside them. Out: edges over the values that are valid; whether two
 * schemas have values in common.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "grammar/intersect.h"
#include "grammar/numbers.h"
#include "grammar/schema_parts.h"

bool cake_schema_has_enum(const cake_schema_list *list)
{
    for (int i = 0; i < list->n; i++)
        if (cake_json_get(list->part[i].schema, "enum") || cake_json_get(list->part[i].schema, "const"))
            return true;
    return false;
}

int cake_schema_compare_numbers(const cake_json *a, const cake_json *b)
{
    const int64_t i = cake_json_int(a, 0), j = cake_json_int(b, 0);
    const double x = cake_json_real(a, 0), y = cake_json_real(b, 0);
    cake_number_limits read = {0};
    size_t n, m;
    if (cake_json_kind(a) == CAKE_JSON_INT && cake_json_kind(b) == CAKE_JSON_INT)
        return (i > j) - (i < j);
    if (x != y) /* rounding to doubles swaps no numbers; it makes some equal */
        return x < y ? -1 : 1;
    if (cake_json_kind(a) == cake_json_kind(b) && !cake_json_digits(a, &n) && !cake_json_digits(b, &m))
        return 0;
    cake_decimal_read(a, &read.min); /* integers of more digits than it likes are read nevertheless */
    cake_decimal_read(b, &read.max);
    const int order = cake_decimal_compare(&read.min, &read.max);
    cake_number_limits_free(&read);
    return order;
}

bool cake_schema_equal(const cake_json *a, const cake_json *b, size_t *work)
{
    ++*work;
    if (cake_json_is_number(a) && cake_json_is_number(b))
        return !cake_schema_compare_numbers(a, b);
    if (cake_json_kind(a) != cake_json_kind(b) || cake_json_size(a) != cake_json_size(b))
        return false;
    switch (cake_json_kind(a)) {
    case CAKE_JSON_BOOL:
        return cake_json_bool(a, false) == cake_json_bool(b, false);
    case CAKE_JSON_STRING: {
        size_t n, m;
        const char *x = cake_json_text(a, &n), *y = cake_json_text(b, &m);
        *work += n == m ? n / 64 : 0;
        return n == m && !memcmp(x, y, n);
    }
    case CAKE_JSON_ARRAY:
        for (size_t i = 0; i < cake_json_size(a); i++)
            if (!cake_schema_equal(cake_json_at(a, i), cake_json_at(b, i), work))
                return false;
        return true;
    case CAKE_JSON_OBJECT:
        for (void *it = cake_json_first(a); it; it = cake_json_next(a, it)) {
            const cake_json *other = cake_json_get(b, cake_json_key(it, NULL));
            if (!other || !cake_schema_equal(cake_json_value(it), other, work))
                return false;
        }
        return true;
    default:
        return true;
    }
}

/* Whether the schema's own enum and const have the value. */
static bool lists(const cake_json *schema, const cake_json *value)
{
    const cake_json *all = cake_json_get(schema, "enum"), *one = cake_json_get(schema, "const");
    bool found = !all;
    size_t work = 0;
    for (size_t i = 0; i < cake_json_size(all) && !found; i++)
        found = cake_schema_equal(cake_json_at(all, i), value, &work);
    return found && (!one || cake_schema_equal(one, value, &work));
}

int cake_schema_type_of(const cake_json *value)
{
    static const int types[] = {[CAKE_JSON_NULL] = CAKE_TYPE_NULL,   [CAKE_JSON_BOOL] = CAKE_TYPE_BOOL,
                                [CAKE_JSON_INT] = CAKE_TYPE_INTEGER, [CAKE_JSON_STRING] = CAKE_TYPE_STRING,
                                [CAKE_JSON_ARRAY] = CAKE_TYPE_ARRAY, [CAKE_JSON_OBJECT] = CAKE_TYPE_OBJECT,
                                [CAKE_JSON_REAL] = CAKE_TYPE_NUMBER, [CAKE_JSON_ABSENT] = 0};
    const double real = cake_json_real(value, NAN);
    return cake_json_is_number(value) && real == rint(real) ? CAKE_TYPE_INTEGER
                                                            : types[cake_json_kind(value)];
}

static bool within(const cake_number_limits *l, const cake_json *value)
{
    cake_automaton rules = {0};
    cake_buf text = {0};
    const int rule = cake_automaton_rule(&rules);
    cake_json_add_node(&text, value);
    const bool is = (!l->min.given && !l->max.given && !l->n_multiple) ||
                    (cake_numbers_add(&rules, rules.rule[rule].begin, l, rules.rule[rule].end) &&
                     cake_language_has(&rules, rule, text.data, text.len));
    cake_buf_free(&text);
    cake_automaton_free(&rules);
    return is;
}

/* ---- values as text */

static void add_text(cake_schema_compiler *c, const cake_json *value, cake_automaton *to, int32_t from,
                     int32_t end)
{
    size_t len;
    const char *text = cake_json_text(value, &len);
    cake_automaton_expr(to, from, cake_expr_text(&c->exprs, text, len), CAKE_CODING_JSON, end);
}

void cake_schema_add_value(cake_schema_compiler *c, const cake_json *value, int32_t from, int32_t to)
{
    cake_automaton *a = c->automaton;
    const bool object = cake_json_kind(value) == CAKE_JSON_OBJECT;
    cake_buf text = {0};
    if (cake_json_kind(value) == CAKE_JSON_STRING) {
        const int32_t begin = cake_schema_byte(c, from, '"'), end = cake_automaton_state(a);
        add_text(c, value, a, begin, end);
        cake_automaton_bytes(a, end, '"', '"', to);
    } else if (object || cake_json_kind(value) == CAKE_JSON_ARRAY) {
        int32_t at = cake_schema_space(c, cake_schema_byte(c, from, object ? '{' : '['));
        void *it = object ? cake_json_first(value) : NULL;
        for (size_t i = 0; i < cake_json_size(value) && !a->full; i++) {
            if (i)
                at = cake_schema_space(c, cake_schema_byte(c, at, ','));
            if (object) {
                size_t len;
                const char *key = cake_json_key(it, &len);
                const int32_t begin = cake_schema_byte(c, at, '"'), end = cake_automaton_state(a);
                cake_automaton_expr(a, begin, cake_expr_text(&c->exprs, key, len), CAKE_CODING_JSON, end);
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
        cake_json_add_node(&text, value);
        cake_automaton_empty(a, cake_automaton_literal(a, from, text.data, text.len), to);
    }
    cake_buf_free(&text);
}

/* The strings among the values that obey the other keywords, too. */
static cake_err add_strings(cake_schema_compiler *c, const cake_schema_list *list,
                            const cake_json *const *value, size_t n, int32_t from, int32_t to)
{
    cake_automaton rules = {0};
    cake_language language[CAKE_MAX_LANGUAGE] = {{0}};
    int n_language = 0;
    const int own = cake_automaton_rule(&rules);
    for (size_t i = 0; i < n; i++)
        if (cake_json_kind(value[i]) == CAKE_JSON_STRING)
            add_text(c, value[i], &rules, rules.rule[own].begin, rules.rule[own].end);
    language[n_language++].rule = own;
    cake_err err = cake_schema_string_rules(c, list, &rules, language, &n_language);
    if (!err) {
        const int32_t begin = cake_schema_byte(c, from, '"'), end = cake_automaton_state(c->automaton);
        cake_automaton_bytes(c->automaton, end, '"', '"', to);
        cake_intersect(&rules, language, n_language, c->automaton, begin, end);
    }
    cake_automaton_free(&rules);
    return err;
}

cake_err cake_schema_add_enum(cake_schema_compiler *c, const cake_schema_list *list, int types, int32_t from,
                              int32_t to)
{
    const cake_json *all = NULL, *one = NULL;
    const cake_json **value;
    cake_number_limits limits = {0};
    size_t n = 0;
    int seen = 0;
    for (int i = 0; i < list->n; i++) {
        const cake_json *own = cake_json_get(list->part[i].schema, "enum");
        if (own && (cake_json_kind(own) != CAKE_JSON_ARRAY || !cake_json_size(own)))
            return cake_schema_wrong(c, list->part[i].schema, "enum", "expected an array of values");
        all = all ? all : own;
        one = one ? one : cake_json_get(list->part[i].schema, "const");
    }
    cake_err err = cake_schema_number_limits(c, list, &limits);
    const size_t count = one ? 1 : cake_json_size(all);
    value = cake_alloc(count, sizeof *value);
    for (size_t k = 0; k < count && !err; k++) {
        const cake_json *each = one ? one : cake_json_at(all, k);
        const int type = cake_schema_type_of(each);
        bool valid = type & types;
        for (int i = 0; i < list->n && valid; i++)
            valid = lists(list->part[i].schema, each);
        if (valid && type & (CAKE_TYPE_INTEGER | CAKE_TYPE_NUMBER))
            valid = within(&limits, each);
        if (!valid)
            continue;
        value[n++] = each;
        seen |= type;
        if (type != CAKE_TYPE_STRING)
            cake_schema_add_value(c, each, from, to);
    }
    if (!err && seen & CAKE_TYPE_STRING)
        err = add_strings(c, list, value, n, from, to);
    cake_number_limits_free(&limits);
    free(value);
    return err;
}

/* ---- disjoint schemas */

/* The schema behind references, as long as it is nothing but one. */
static const cake_json *behind(const cake_schema_compiler *c, const cake_json *schema)
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

static bool requires(const cake_json *schema, const char *name)
{
    const cake_json *list = cake_json_get(schema, "required");
    for (size_t i = 0; i < cake_json_size(list); i++) {
        const char *text = cake_json_text(cake_json_at(list, i), NULL);
        if (text && !strcmp(text, name))
            return true;
    }
    return false;
}

/* The values that a schema lists; *one: for a const. NULL: it lists none. */
static const cake_json *listed(const cake_json *schema, bool *one)
{
    const cake_json *value = cake_json_get(schema, "const");
    *one = value != NULL;
    return value ? value : cake_json_get(schema, "enum");
}

static bool lists_differ(const cake_json *a, const cake_json *b)
{
    bool one;
    const cake_json *values = listed(a, &one);
    bool other;
    if (!values || !listed(b, &other))
        return false;
    for (size_t i = 0; i < (one ? 1 : cake_json_size(values)); i++)
        if (lists(b, one ? values : cake_json_at(values, i)))
            return false;
    return true;
}

static int types_alone(cake_schema_compiler *c, const cake_json *schema)
{
    bool one;
    int types = CAKE_TYPE_ALL, found = 0;
    const cake_json *values = listed(schema, &one);
    cake_fault *fault = c->fault, dropped;
    c->fault = &dropped;
    if (cake_schema_types(c, schema, &types))
        types = CAKE_TYPE_ALL;
    c->fault = fault;
    for (size_t i = 0; values && i < (one ? 1 : cake_json_size(values)); i++)
        found |= cake_schema_type_of(one ? values : cake_json_at(values, i));
    return values ? types & found : types;
}

static bool disjoint(cake_schema_compiler *c, const cake_json *a, const cake_json *b, int depth)
{
    a = behind(c, a);
    b = behind(c, b);
    const int common = types_alone(c, a) & types_alone(c, b);
    const cake_json *mine = cake_json_get(a, "properties"), *other = cake_json_get(b, "properties");
    if (!common || lists_differ(a, b))
        return true;
    if (common != CAKE_TYPE_OBJECT || !depth)
        return false;
    for (void *it = cake_json_first(mine); it; it = cake_json_next(mine, it)) {
        const char *name = cake_json_key(it, NULL);
        const cake_json *same = cake_json_get(other, name);
        if (requires(a, name) && requires(b, name) && same &&
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
        for (size_t i = 0; i < cake_json_size(list); i++) {
            const char *name = cake_json_text(cake_json_at(list, i), NULL);
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
