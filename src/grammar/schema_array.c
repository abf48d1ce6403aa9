/* SPDX-License-Identifier: Apache-2.0
 *
 * In: keywords about arrays: prefixItems, items, additionalItems, minItems, maxItems. Out: edges over arrays
 * that obey all.
 */
#include "grammar/schema_parts.h"

/* Schemas of one item: of item i, or, beyond all prefixes, of the others. */
static int item_rule(cake_schema_compiler *c, const cake_schema_list *list, size_t i)
{
    cake_schema_list item = {0};
    for (int p = 0; p < list->n; p++) {
        const cake_json *schema = list->part[p].schema;
        const cake_json *items = cake_json_get(schema, "items"),
                        *prefix = cake_json_get(schema, "prefixItems");
        if (cake_json_kind(items) == CAKE_JSON_ARRAY) { /* draft 7 */
            prefix = items;
            items = cake_json_get(schema, "additionalItems");
        }
        const cake_json *own = i < cake_json_size(prefix) ? cake_json_at(prefix, i) : items;
        if (own)
            cake_schema_list_add(&item, own);
    }
    return cake_schema_rule_of(c, &item);
}

static bool is_schema(const cake_json *node)
{
    const cake_json_type kind = cake_json_kind(node);
    return kind == CAKE_JSON_ABSENT || kind == CAKE_JSON_BOOL || kind == CAKE_JSON_OBJECT;
}

static cake_err read_limits(cake_schema_compiler *c, const cake_schema_list *list, int64_t *min, int64_t *max,
                            size_t *n_prefix)
{
    cake_err err = CAKE_OK;
    for (int p = 0; p < list->n && !err; p++) {
        const cake_json *schema = list->part[p].schema;
        const cake_json *items = cake_json_get(schema, "items"),
                        *prefix = cake_json_get(schema, "prefixItems");
        const bool old = cake_json_kind(items) == CAKE_JSON_ARRAY;
        int64_t low = 0, high = -1;
        if (prefix && cake_json_kind(prefix) != CAKE_JSON_ARRAY)
            return cake_schema_wrong(c, schema, "prefixItems", "expected an array of schemas");
        if (!old && !is_schema(items))
            return cake_schema_wrong(c, schema, "items", "expected a schema: an object, true or false");
        if (old && !is_schema(cake_json_get(schema, "additionalItems")))
            return cake_schema_wrong(c, schema, "additionalItems",
                                     "expected a schema: an object, true or false");
        prefix = old ? items : prefix;
        for (size_t i = 0; i < cake_json_size(prefix); i++)
            if (!is_schema(cake_json_at(prefix, i)))
                return cake_schema_wrong(c, schema, old ? "items" : "prefixItems",
                                         "expected schemas: objects, true or false");
        *n_prefix = cake_json_size(prefix) > *n_prefix ? cake_json_size(prefix) : *n_prefix;
        err = cake_schema_count(c, schema, "minItems", &low);
        if (!err)
            err = cake_schema_count(c, schema, "maxItems", &high);
        high = high > CAKE_AUTOMATON_STATES ? -1 : high; /* no answer has so many */
        *min = low > *min ? low : *min;
        *max = *max < 0 || (high >= 0 && high < *max) ? high : *max;
    }
    return err;
}

cake_err cake_schema_add_array(cake_schema_compiler *c, const cake_schema_list *list, int32_t from,
                               int32_t to)
{
    cake_automaton *a = c->automaton;
    int64_t min = 0, max = -1;
    size_t n_prefix = 0;
    cake_err err = read_limits(c, list, &min, &max, &n_prefix);
    if (err)
        return err;
    const int rest = item_rule(c, list, n_prefix);
    const int64_t single =
        (int64_t)n_prefix > min ? (int64_t)n_prefix : min; /* items with a state of their own */
    const int64_t last = max >= 0 ? max : single;
    int32_t begin = cake_schema_space(c, cake_schema_byte(c, from, '['));
    if (!min)
        cake_automaton_bytes(a, begin, ']', ']', to);
    for (int64_t i = 0; i < last && !a->full; i++) {
        const int rule = i < (int64_t)n_prefix ? item_rule(c, list, (size_t)i) : rest;
        const int32_t after = cake_schema_space(c, cake_schema_call(c, begin, rule));
        if (i + 1 >= min)
            cake_automaton_bytes(a, after, ']', ']', to);
        begin = cake_schema_space(c, cake_schema_byte(c, after, ','));
    }
    if (max < 0) { /* any number of others; after the first bracket no comma comes before them */
        const int32_t item = cake_automaton_state(a);
        const int32_t after = cake_schema_space(c, cake_schema_call(c, item, rest));
        cake_automaton_empty(a, begin, item);
        cake_automaton_bytes(a, after, ']', ']', to);
        cake_automaton_call(a, cake_schema_byte(c, after, ','), c->json.space, item);
    }
    return CAKE_OK;
}
