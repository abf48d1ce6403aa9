/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests: the names after `is`. In: a value and arguments. Out: true or false.
 */
#include <string.h>

#include "jinja/internal.h"

static const char *const no_names[] = {NULL};
static const char *const other_name[] = {"other", NULL};

/* A test without arguments. */
#define PLAIN(name, condition)                                                                               \
    static cake_value is_##name(cake_render *run, cake_value v, const cake_args *args, const char *called)   \
    {                                                                                                        \
        cake_args_bind(run, args, called, no_names, NULL);                                                   \
        return cake_value_bool(condition);                                                                   \
    }

PLAIN(boolean, v.kind == CAKE_VALUE_BOOL)
PLAIN(callable, v.kind == CAKE_VALUE_CALL || v.kind == CAKE_VALUE_LOOP || v.kind == CAKE_VALUE_UNDEFINED)
PLAIN(defined, v.kind != CAKE_VALUE_UNDEFINED)
PLAIN(escaped, v.kind == CAKE_VALUE_TEXT && v.subtype)
PLAIN(false, v.kind == CAKE_VALUE_BOOL && !v.truth)
PLAIN(float, v.kind == CAKE_VALUE_REAL)
PLAIN(integer, v.kind == CAKE_VALUE_INT || v.kind == CAKE_VALUE_BIG)
PLAIN(iterable, cake_value_is_iterable(v) || v.kind == CAKE_VALUE_LOOP)
PLAIN(mapping, v.kind == CAKE_VALUE_DICT)
PLAIN(none, v.kind == CAKE_VALUE_NONE)
PLAIN(number, cake_value_is_number(v))
PLAIN(sequence, v.kind == CAKE_VALUE_TEXT || v.kind == CAKE_VALUE_DICT || v.kind == CAKE_VALUE_UNDEFINED ||
                    (v.kind == CAKE_VALUE_LIST && cake_list_indexed(v.subtype)))
PLAIN(string, v.kind == CAKE_VALUE_TEXT)
PLAIN(true, v.kind == CAKE_VALUE_BOOL && v.truth)
PLAIN(undefined, v.kind == CAKE_VALUE_UNDEFINED)
PLAIN(filter, v.kind == CAKE_VALUE_TEXT && cake_filter_find(v))
PLAIN(test, v.kind == CAKE_VALUE_TEXT && cake_test_find(v))

/* Whether v modulo `by` equals rest. */
static bool divides(cake_render *run, cake_value v, cake_value by, int64_t rest)
{
    return cake_value_equal(run, cake_eval_math(run, '%', v, by), cake_value_int(rest));
}

PLAIN(even, divides(run, v, cake_value_int(2), 0))
PLAIN(odd, divides(run, v, cake_value_int(2), 1))

static cake_value is_divisibleby(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    static const char *const names[] = {"num", NULL};
    cake_value by = cake_value_none();
    return cake_value_bool(cake_args_bind(run, args, called, names, &by) && divides(run, v, by, 0));
}

static bool is_case(cake_render *run, cake_value v, const char *method)
{
    cake_value name = cake_value_name(method);
    cake_value found = cake_method_find(run, cake_value_to_text(run, v), name, cake_method_hint(name));
    return cake_value_truth(cake_value_invoke(run, found, &(cake_args){0}));
}

PLAIN(lower, is_case(run, v, "islower"))
PLAIN(upper, is_case(run, v, "isupper"))

#define COMPARISON(name, condition)                                                                          \
    static cake_value is_##name(cake_render *run, cake_value v, const cake_args *args, const char *called)   \
    {                                                                                                        \
        cake_value other = cake_value_none();                                                                \
        if (!args->n && !args->named)                                                                        \
            return cake_render_fail(run, "the test %s wants a value to compare with", called);               \
        return cake_value_bool(cake_args_bind(run, args, called, other_name, &other) && (condition));        \
    }

/* -1, 0 or 1; 2: not comparable. */
static int order(cake_render *run, cake_value a, cake_value b)
{
    int o = cake_value_compare(run, a, b);
    return run->failed || (o == 2 && cake_value_is_number(a)) ? 2 : (o > 0) - (o < 0);
}

/* Python's `is`; equal values of types that Python interns count as the same. */
static bool same(cake_render *run, cake_value a, cake_value b)
{
    if (a.kind != b.kind)
        return false;
    if (a.kind == CAKE_VALUE_LIST || a.kind == CAKE_VALUE_DICT || a.kind == CAKE_VALUE_SPACE)
        return a.list == b.list;
    return cake_value_equal(run, a, b);
}

COMPARISON(eq, cake_value_equal(run, v, other))
COMPARISON(ne, !cake_value_equal(run, v, other))
COMPARISON(lt, order(run, v, other) == -1)
COMPARISON(le, order(run, v, other) <= 0)
COMPARISON(gt, order(run, v, other) == 1)
COMPARISON(ge, order(run, v, other) == 0 || order(run, v, other) == 1)
COMPARISON(in, cake_value_contains(run, v, other))
COMPARISON(sameas, same(run, v, other))

static const cake_filter tests[] = {
    {"boolean", is_boolean},
    {"callable", is_callable},
    {"defined", is_defined},
    {"divisibleby", is_divisibleby},
    {"eq", is_eq},
    {"equalto", is_eq},
    {"==", is_eq},
    {"escaped", is_escaped},
    {"even", is_even},
    {"false", is_false},
    {"filter", is_filter},
    {"float", is_float},
    {"ge", is_ge},
    {">=", is_ge},
    {"gt", is_gt},
    {"greaterthan", is_gt},
    {">", is_gt},
    {"in", is_in},
    {"integer", is_integer},
    {"iterable", is_iterable},
    {"le", is_le},
    {"<=", is_le},
    {"lessthan", is_lt},
    {"lt", is_lt},
    {"<", is_lt},
    {"lower", is_lower},
    {"mapping", is_mapping},
    {"ne", is_ne},
    {"!=", is_ne},
    {"none", is_none},
    {"number", is_number},
    {"odd", is_odd},
    {"sameas", is_sameas},
    {"sequence", is_sequence},
    {"string", is_string},
    {"test", is_test},
    {"true", is_true},
    {"undefined", is_undefined},
    {"upper", is_upper},
};

const cake_filter *cake_test_find(cake_value name)
{
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (cake_value_is_text(name, tests[i].name))
            return &tests[i];
    return NULL;
}
