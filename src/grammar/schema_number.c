/* SPDX-License-Identifier: Apache-2.0
 *
 * In: keywords about numbers: minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf. Out: edges
 * over numbers that obey all.
 */
#include <string.h>

#include "grammar/numbers.h"
#include "grammar/schema_parts.h"

/* Takes a bound over if it is the narrower one. upper: it is a maximum. */
static cake_err take_bound(cake_schema_compiler *c, const cake_json *schema, const char *keyword,
                           bool excluded, bool upper, cake_number_limits *limits)
{
    const cake_json *node = cake_json_get(schema, keyword);
    cake_decimal own = {0}, *kept = upper ? &limits->max : &limits->min;
    bool *kept_excluded = upper ? &limits->below_max : &limits->above_min;
    if (!node)
        return CAKE_OK;
    if (!cake_decimal_read(node, &own)) {
        cake_number_limits_free(&(cake_number_limits){.min = own});
        return cake_schema_wrong(c, schema, keyword, "expected a number of at most 400 digits");
    }
    const int order = kept->given ? cake_decimal_compare(&own, kept) : upper ? -1 : 1;
    const bool narrower = upper ? order < 0 : order > 0;
    if (narrower) {
        const cake_decimal other = *kept;
        *kept = own;
        own = other;
        *kept_excluded = excluded;
    } else if (!order) {
        *kept_excluded = *kept_excluded || excluded;
    }
    cake_number_limits_free(&(cake_number_limits){.min = own});
    return CAKE_OK;
}

cake_err cake_schema_number_limits(cake_schema_compiler *c, const cake_schema_list *list,
                                   cake_number_limits *limits)
{
    cake_err err = CAKE_OK;
    for (int i = 0; i < list->n && !err; i++) {
        const cake_json *schema = list->part[i].schema, *multiple = cake_json_get(schema, "multipleOf");
        /* in draft 4 exclusiveMinimum and exclusiveMaximum say whether minimum and maximum are excluded */
        const bool above = cake_json_bool(cake_json_get(schema, "exclusiveMinimum"), false);
        const bool below = cake_json_bool(cake_json_get(schema, "exclusiveMaximum"), false);
        err = take_bound(c, schema, "minimum", above, false, limits);
        if (!err)
            err = take_bound(c, schema, "maximum", below, true, limits);
        if (!err && cake_json_kind(cake_json_get(schema, "exclusiveMinimum")) != CAKE_JSON_BOOL)
            err = take_bound(c, schema, "exclusiveMinimum", true, false, limits);
        if (!err && cake_json_kind(cake_json_get(schema, "exclusiveMaximum")) != CAKE_JSON_BOOL)
            err = take_bound(c, schema, "exclusiveMaximum", true, true, limits);
        if (err || !multiple)
            continue;
        if (limits->n_multiple == CAKE_MAX_MULTIPLE)
            err = cake_schema_wrong(c, schema, "multipleOf", "more than four hold for one value");
        else if (!cake_decimal_read(multiple, &limits->multiple[limits->n_multiple++]))
            err = cake_schema_wrong(c, schema, "multipleOf", "expected a number above 0");
    }
    return err;
}

static cake_err wrong_multiple(cake_schema_compiler *c, const cake_schema_list *list)
{
    int i = 0;
    while (i + 1 < list->n && !cake_json_get(list->part[i].schema, "multipleOf"))
        i++;
    return cake_schema_wrong(c, list->part[i].schema, "multipleOf",
                             "expected a number above 0 of at most 10000 units of its last digit");
}

cake_err cake_schema_check_numbers(cake_schema_compiler *c, const cake_schema_list *list)
{
    cake_number_limits limits = {0};
    cake_err err = cake_schema_number_limits(c, list, &limits);
    if (!err && !cake_numbers_right(&limits))
        err = wrong_multiple(c, list);
    cake_number_limits_free(&limits);
    return err;
}

cake_err cake_schema_add_number(cake_schema_compiler *c, const cake_schema_list *list, bool integer,
                                int32_t from, int32_t to)
{
    cake_number_limits limits = {.integer = integer};
    cake_err err = cake_schema_number_limits(c, list, &limits);
    if (!err && !limits.min.given && !limits.max.given && !limits.n_multiple) {
        cake_automaton_call(c->automaton, from, integer ? c->json.integer : c->json.number, to);
    } else if (!err && !cake_numbers_add(c->automaton, from, &limits, to)) {
        err = wrong_multiple(c, list);
    }
    cake_number_limits_free(&limits);
    return err;
}
