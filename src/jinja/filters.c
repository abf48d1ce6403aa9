/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters on lists, dicts and numbers. In: a value and arguments. Out: the result of Jinja's filter of that
 * name.
 * Invariant: no filter changes its input, except that it empties a generator.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jinja/internal.h"

static const char *const no_names[] = {NULL};

/* The number that a text of up to nine digits means; -1: not such a text. */
static int64_t index_of(cake_value text)
{
    int64_t index = text.text.len && text.text.len < 10 ? 0 : -1;
    for (size_t i = 0; index >= 0 && i < text.text.len; i++) {
        char c = text.text.data[i];
        index = c >= '0' && c <= '9' ? 10 * index + (c - '0') : -1;
    }
    return index;
}

/* v.a.b.0, as in the filters' attribute arguments; otherwise: replaces missing attributes (NULL:
 * undefined). */
static cake_value attribute_or(cake_render *run, cake_value v, cake_value path, const cake_value *otherwise)
{
    if (path.kind != CAKE_VALUE_TEXT) {
        v = cake_value_item(run, v, path);
        return otherwise && v.kind == CAKE_VALUE_UNDEFINED ? *otherwise : v;
    }
    const cake_list *parts = cake_text_split(run, path, cake_value_name("."), -1, false).list;
    for (size_t i = 0; i < parts->n && !run->failed; i++) {
        cake_value part = parts->item[i];
        int64_t index = index_of(part);
        if (index >= 0)
            part = cake_value_int(index);
        v = cake_value_item(run, v, part);
        if (otherwise && v.kind == CAKE_VALUE_UNDEFINED)
            v = *otherwise;
    }
    return v;
}

static cake_value attribute_of(cake_render *run, cake_value v, cake_value path)
{
    return attribute_or(run, v, path, NULL);
}

static cake_value do_abs(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    if (!cake_args_bind(run, args, called, no_names, NULL) || !cake_value_usable(run, v))
        return v;
    if (!cake_value_is_number(v))
        return cake_render_fail(run, "bad operand type for abs(): '%s'", cake_value_type(v));
    if (v.kind == CAKE_VALUE_REAL)
        return cake_value_real(fabs(v.real));
    if (v.kind == CAKE_VALUE_BOOL)
        v = cake_value_int(v.truth);
    return cake_value_compare(run, v, cake_value_int(0)) < 0 ? cake_value_negative(run, v) : v;
}

static cake_value do_attr(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    static const char *const names[] = {"name", NULL};
    cake_value name = cake_value_none();
    if (!cake_args_bind(run, args, called, names, &name) || !cake_arg_text(run, name, "attr"))
        return v;
    cake_value found = v.kind == CAKE_VALUE_LOOP ? cake_loop_attr(run, v, cake_loop_attr_find(name))
                                                 : cake_method_find(run, v, name, cake_method_hint(name));
    return found.kind == CAKE_VALUE_UNDEFINED ? cake_value_undefined(run, cake_value_type(v), name) : found;
}

static cake_value do_length(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    if (!cake_args_bind(run, args, called, no_names, NULL))
        return v;
    if (v.kind == CAKE_VALUE_TEXT)
        return cake_value_int((int64_t)cake_text_count(run, v));
    if (v.kind == CAKE_VALUE_LIST && v.subtype != CAKE_GENERATOR)
        return cake_value_int((int64_t)v.list->n);
    if (v.kind == CAKE_VALUE_DICT)
        return cake_value_int((int64_t)v.dict->n);
    if (v.kind == CAKE_VALUE_UNDEFINED)
        return cake_value_int(0);
    return cake_render_fail(run, "object of type '%s' has no len()", cake_value_type(v));
}

static cake_value do_list(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    cake_value list = cake_value_list(run, CAKE_LIST);
    if (cake_args_bind(run, args, called, no_names, NULL))
        list.list = cake_value_items(run, v);
    return list;
}

static cake_value do_first(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    if (!cake_args_bind(run, args, called, no_names, NULL))
        return v;
    const cake_list *list = cake_value_items(run, v);
    return list->n ? list->item[0]
                   : cake_value_undefined(run, NULL, cake_value_name("the first item of nothing"));
}

static cake_value do_last(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    if (!cake_args_bind(run, args, called, no_names, NULL))
        return v;
    if (v.kind == CAKE_VALUE_LIST && v.subtype == CAKE_GENERATOR)
        return cake_render_fail(run, "'generator' object is not reversible");
    const cake_list *list = cake_value_items(run, v);
    return list->n ? list->item[list->n - 1]
                   : cake_value_undefined(run, NULL, cake_value_name("the last item of nothing"));
}

static cake_value do_default(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    static const char *const names[] = {"default_value", "boolean", NULL};
    cake_value out[2] = {cake_value_name(""), cake_value_bool(false)};
    if (!cake_args_bind(run, args, called, names, out))
        return v;
    return v.kind == CAKE_VALUE_UNDEFINED || (cake_value_truth(out[1]) && !cake_value_truth(v)) ? out[0] : v;
}

static cake_value pair_of(cake_render *run, cake_value a, cake_value b)
{
    cake_value pair = cake_value_list(run, CAKE_TUPLE);
    cake_list_push(run, pair.list, a);
    cake_list_push(run, pair.list, b);
    return pair;
}

static cake_value do_items(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    cake_value list = cake_value_list(run, CAKE_GENERATOR);
    if (!cake_args_bind(run, args, called, no_names, NULL) || v.kind == CAKE_VALUE_UNDEFINED)
        return list;
    if (v.kind != CAKE_VALUE_DICT)
        return cake_render_fail(run, "Can only get item pairs from a mapping.");
    for (size_t i = 0; i < v.dict->n && !run->failed; i++)
        cake_list_push(run, list.list, pair_of(run, v.dict->key[i], v.dict->value[i]));
    return list;
}

/* --- order --- */

/* Sorts by an attribute of the item, or by the item; texts without regard to case, by default. */
typedef struct sorting {
    cake_value attribute; /* none: the item itself */
    bool sensitive, descending;
    bool strict; /* equal keys need an order, too */
} sorting;

static cake_value sort_key(cake_render *run, cake_value item, const sorting *by)
{
    if (by->attribute.kind != CAKE_VALUE_NONE)
        item = attribute_of(run, item, by->attribute);
    return !by->sensitive && item.kind == CAKE_VALUE_TEXT ? cake_text_case(run, item, CAKE_LOWER) : item;
}

/* A stable merge sort of n items by their keys. */
static void merge_sort(cake_render *run, cake_value *key, cake_value *item, size_t n, const sorting *by)
{
    if (!cake_render_room(run, 2 * n * sizeof *key))
        return;
    cake_value *keys = cake_jinja_arena_take(&run->arena, (n + 1) * sizeof *keys);
    cake_value *items = cake_jinja_arena_take(&run->arena, (n + 1) * sizeof *items);
    for (size_t width = 1; width < n && cake_render_spend(run, n); width *= 2) {
        for (size_t from = 0; from < n; from += 2 * width) {
            size_t a = from, mid = from + width < n ? from + width : n, b = mid;
            size_t end = from + 2 * width < n ? from + 2 * width : n;
            for (size_t to = from; to < end; to++) {
                bool second = a == mid;
                if (a < mid && b < end && !run->failed) {
                    bool same = !by->strict && cake_value_equal(run, key[b], key[a]);
                    int order = same ? 0 : cake_value_compare(run, key[b], key[a]);
                    second = by->descending ? order > 0 && order != 2 : order < 0;
                }
                size_t take = second ? b++ : a++;
                keys[to] = key[take];
                items[to] = item[take];
            }
        }
        memcpy(key, keys, n * sizeof *key);
        memcpy(item, items, n * sizeof *item);
    }
}

static cake_value sorted(cake_render *run, const cake_list *from, const sorting *by)
{
    cake_list *keys = cake_value_list(run, CAKE_LIST).list;
    cake_value list = cake_value_list(run, CAKE_LIST);
    for (size_t i = 0; i < from->n && !run->failed; i++) {
        cake_list_push(run, keys, sort_key(run, from->item[i], by));
        cake_list_push(run, list.list, from->item[i]);
    }
    if (!run->failed)
        merge_sort(run, keys->item, list.list->item, from->n, by);
    return list;
}

static cake_value do_sort(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    static const char *const names[] = {"reverse", "case_sensitive", "attribute", NULL};
    cake_value out[3] = {cake_value_bool(false), cake_value_bool(false), cake_value_none()};
    if (!cake_args_bind(run, args, called, names, out))
        return v;
    sorting by = {
        .attribute = out[2], .sensitive = cake_value_truth(out[1]), .descending = cake_value_truth(out[0])};
    if (out[2].kind != CAKE_VALUE_TEXT)
        return sorted(run, cake_value_items(run, v), &by);
    /* "a,b": sorts by the last one first, since the sort is stable. */
    const cake_list *names_of = cake_text_split(run, out[2], cake_value_name(","), -1, false).list;
    cake_value list = cake_value_list(run, CAKE_LIST);
    list.list = cake_value_items(run, v);
    for (size_t i = names_of->n; i-- > 0 && !run->failed;) {
        by.attribute = names_of->item[i];
        list = sorted(run, list.list, &by);
    }
    return list;
}

static cake_value do_dictsort(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    static const char *const names[] = {"case_sensitive", "by", "reverse", NULL};
    cake_value out[3] = {cake_value_bool(false), cake_value_name("key"), cake_value_bool(false)};
    cake_list *pairs = cake_value_list(run, CAKE_LIST).list;
    if (!cake_args_bind(run, args, called, names, out))
        return v;
    if (v.kind != CAKE_VALUE_DICT ||
        (!cake_value_is_text(out[1], "key") && !cake_value_is_text(out[1], "value")))
        return cake_render_fail(run, "dictsort sorts a dict by 'key' or by 'value'");
    for (size_t i = 0; i < v.dict->n && !run->failed; i++)
        cake_list_push(run, pairs, pair_of(run, v.dict->key[i], v.dict->value[i]));
    sorting by = {.attribute = cake_value_int(cake_value_is_text(out[1], "value")),
                  .sensitive = cake_value_truth(out[0]),
                  .descending = cake_value_truth(out[2]),
                  .strict = true};
    return sorted(run, pairs, &by);
}

/* min and max */
static cake_value do_extreme(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    static const char *const names[] = {"case_sensitive", "attribute", NULL};
    cake_value out[2] = {cake_value_bool(false), cake_value_none()}, best = cake_value_none(),
               best_key = cake_value_none();
    int sign = called[1] == 'i' ? -1 : 1;
    if (!cake_args_bind(run, args, called, names, out))
        return v;
    sorting by = {.attribute = out[1], .sensitive = cake_value_truth(out[0])};
    const cake_list *list = cake_value_items(run, v);
    for (size_t i = 0; i < list->n && !run->failed; i++) {
        cake_value key = sort_key(run, list->item[i], &by);
        if (i && sign * cake_value_compare(run, key, best_key) <= 0)
            continue;
        best = list->item[i];
        best_key = key;
    }
    return list->n ? best : cake_value_undefined(run, NULL, cake_value_name("the extreme of nothing"));
}

static cake_value do_unique(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    static const char *const names[] = {"case_sensitive", "attribute", NULL};
    cake_value out[2] = {cake_value_bool(false), cake_value_none()},
               list = cake_value_list(run, CAKE_GENERATOR);
    if (!cake_args_bind(run, args, called, names, out))
        return v;
    sorting by = {.attribute = out[1], .sensitive = cake_value_truth(out[0])};
    cake_dict *seen = cake_value_dict(run).dict;
    const cake_list *items = cake_value_items(run, v);
    for (size_t i = 0; i < items->n && !run->failed; i++) {
        cake_value key = sort_key(run, items->item[i], &by);
        if (cake_dict_find(run, seen, key))
            continue;
        cake_dict_set(run, seen, key, cake_value_none());
        cake_list_push(run, list.list, items->item[i]);
    }
    return list;
}

static cake_value do_reverse(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    if (!cake_args_bind(run, args, called, no_names, NULL))
        return v;
    const cake_list *items = cake_value_items(run, v);
    cake_value list = cake_value_list(run, CAKE_GENERATOR);
    for (size_t i = items->n; i-- > 0 && !run->failed;)
        cake_list_push(run, list.list, items->item[i]);
    if (v.kind != CAKE_VALUE_TEXT)
        return list;
    cake_writer w = {.run = run};
    for (size_t i = 0; i < list.list->n; i++)
        cake_value_str(&w, list.list->item[i]);
    return cake_write_done(&w);
}

/* --- map, select and related filters --- */

static cake_args shift(const cake_args *args, size_t n)
{
    return (cake_args){.value = n ? args->value + n : args->value, .n = args->n - n, .named = args->named};
}

static cake_value do_map(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    cake_value list = cake_value_list(run, CAKE_GENERATOR);
    const cake_value *attribute = cake_dict_name(args->named, "attribute");
    const cake_value *otherwise = cake_dict_name(args->named, "default");
    const cake_filter *filter = NULL;
    if (!cake_value_truth(v)) /* any empty value gives an empty list, as in Jinja */
        return list;
    if (!attribute && args->n && args->value[0].kind == CAKE_VALUE_TEXT)
        filter = cake_filter_find(args->value[0]);
    if (!attribute && !filter && args->n && cake_jinja_omits(CAKE_OMITTED_FILTER, args->value[0]))
        return cake_render_fail(run, "the filter '%.*s' is one of Jinja's that this program leaves out",
                                (int)args->value[0].text.len, args->value[0].text.data);
    if (!attribute && !filter)
        return cake_render_fail(run, "%s needs the name of a known filter, or attribute=", called);
    cake_args rest = filter ? shift(args, 1) : *args;
    const cake_list *items = cake_value_items(run, v);
    for (size_t i = 0; i < items->n && cake_render_spend(run, 1); i++) {
        cake_value item = filter ? filter->run(run, items->item[i], &rest, filter->name)
                                 : attribute_or(run, items->item[i], *attribute, otherwise);
        cake_list_push(run, list.list, item);
    }
    return list;
}

/* select, reject, selectattr, rejectattr: keeps the items whose test (the next argument, else truth) has the
 * wanted result; the latter two test an attribute of the item. */
static cake_value do_select(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    bool attribute = strlen(called) > strlen("select"), wanted = called[0] == 's';
    cake_value list = cake_value_list(run, CAKE_GENERATOR);
    size_t used = attribute;
    const cake_filter *test = NULL;
    if (!cake_value_truth(v))
        return list;
    if (args->n < used)
        return cake_render_fail(run, "the name of an attribute is missing");
    if (args->n > used) {
        test = args->value[used].kind == CAKE_VALUE_TEXT ? cake_test_find(args->value[used]) : NULL;
        if (!test)
            return cake_render_fail(run, "select and reject need the name of a known test");
        used++;
    }
    cake_args rest = shift(args, used);
    const cake_list *items = cake_value_items(run, v);
    for (size_t i = 0; i < items->n && cake_render_spend(run, 1); i++) {
        cake_value item = attribute ? attribute_of(run, items->item[i], args->value[0]) : items->item[i];
        if (cake_value_truth(test ? test->run(run, item, &rest, test->name) : item) == wanted)
            cake_list_push(run, list.list, items->item[i]);
    }
    return list;
}

/* --- numbers --- */

static cake_value do_sum(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    static const char *const names[] = {"attribute", "start", NULL};
    cake_value out[2] = {cake_value_none(), cake_value_int(0)};
    if (!cake_args_bind(run, args, called, names, out))
        return v;
    const cake_list *items = cake_value_items(run, v);
    for (size_t i = 0; i < items->n && cake_render_spend(run, 1); i++) {
        cake_value item = items->item[i];
        out[1] = cake_eval_math(run, '+', out[1],
                                out[0].kind == CAKE_VALUE_NONE ? item : attribute_of(run, item, out[0]));
    }
    return out[1];
}

static cake_value do_round(cake_render *run, cake_value v, const cake_args *args, const char *called)
{
    static const char *const names[] = {"precision", "method", NULL};
    cake_value out[2] = {cake_value_int(0), cake_value_name("common")};
    int64_t digits = 0;
    if (!cake_args_bind(run, args, called, names, out) || !cake_arg_int(run, out[0], &digits))
        return v;
    if (!cake_value_is_text(out[1], "common") && !cake_value_is_text(out[1], "ceil") &&
        !cake_value_is_text(out[1], "floor"))
        return cake_render_fail(run, "method must be common, ceil or floor");
    if (!cake_value_is_number(v))
        return cake_render_fail(run, "type %s doesn't define a rounding", cake_value_type(v));
    double scale = pow(10, (double)digits), x = cake_value_number(v);
    if (cake_value_is_text(out[1], "ceil") || cake_value_is_text(out[1], "floor"))
        return cake_value_real((cake_value_is_text(out[1], "ceil") ? ceil(x * scale) : floor(x * scale)) /
                               scale);
    if (v.kind == CAKE_VALUE_BIG && digits >= 0)
        return v;
    if (v.kind != CAKE_VALUE_REAL && digits >= 0)
        return cake_eval_math(run, '+', v, cake_value_int(0));
    if (digits < 0) {
        x = scale > 0 ? nearbyint(x * scale) / scale : copysign(0, x);
        return v.kind == CAKE_VALUE_REAL || fabs(x) > 9e15 ? cake_value_real(x) : cake_value_int((int64_t)x);
    }
    char text[512]; /* the decimal places of x itself, not of a product */
    if (digits > 40 || !isfinite(x))
        return v;
    snprintf(text, sizeof text, "%.*f", (int)digits, x);
    return cake_value_real(strtod(text, NULL));
}

const cake_filter cake_filters_list[] = {
    {"abs", do_abs},         {"attr", do_attr},         {"count", do_length},  {"d", do_default},
    {"default", do_default}, {"dictsort", do_dictsort}, {"first", do_first},   {"items", do_items},
    {"last", do_last},       {"length", do_length},     {"list", do_list},     {"map", do_map},
    {"max", do_extreme},     {"min", do_extreme},       {"reject", do_select}, {"rejectattr", do_select},
    {"reverse", do_reverse}, {"round", do_round},       {"select", do_select}, {"selectattr", do_select},
    {"sort", do_sort},       {"sum", do_sum},           {"unique", do_unique}, {NULL, NULL},
};

const cake_filter *cake_filter_find(cake_value name)
{
    const cake_filter *const tables[] = {cake_filters_list, cake_filters_text};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const cake_filter *f = tables[t]; f->name; f++)
            if (cake_value_is_text(name, f->name))
                return f;
    return NULL;
}
